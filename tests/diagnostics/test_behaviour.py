"""Invariants of what happened, on rows written by hand."""

import numpy as np
import pandas as pd
import pytest

from structjax.diagnostics.behaviour import episodes, jerk, off_nominal, sampling_gap
from structjax.diagnostics.coverage import ranges, saturation
from structjax.diagnostics.residuals import residuals
from structjax.diagnostics.rows import Rows
from structjax.distributions import Normal
from structjax.language.structure import (
    Call,
    Latent,
    Number,
    Observation,
    Structure,
)
from structjax.schema import ActionField, Field, Schema
from structjax.table import RolloutTable, demonstration_table

SCHEMA = Schema(
    observations=(Field("x", None, "", -1.0, 1.0, "position"),),
    actions=(ActionField("steer", "right"), ActionField("gas", "on", low=0.0)),
)


def rows(lengths: list[int], action=None, mean=None, obs=None, latents=None) -> Rows:
    """Episodes of the given lengths; arrays default to zeros."""
    episode = np.repeat(np.arange(len(lengths)), lengths)
    count = len(episode)
    action = np.zeros((count, 2)) if action is None else np.asarray(action, float)
    mean = action if mean is None else np.asarray(mean, float)
    return Rows(
        episode=episode,
        follows=episode[1:] == episode[:-1],
        obs=np.zeros((count, 1)) if obs is None else np.asarray(obs, float),
        next_obs=None,
        latents=latents or {},
        outputs={"action_steer_mean": mean[:, 0], "action_gas_mean": mean[:, 1]},
        action=action,
    )


def test_segments_are_cut_at_episode_ends_and_recover_only_within_them():
    """Masks 0 1 1 0 1 | 1 0 1: the segment of row 4 ends with its episode."""
    mask = np.array([0, 1, 1, 0, 1, 1, 0, 1], bool)
    result = off_nominal(rows([5, 3]), mask)
    assert result.values == {
        "share": 5 / 8,
        "segments": 4,
        "longest": 2,
        "mean_length": 5 / 4,
        "recovered": 2,
        "share_by_episode": {0: 3 / 5, 1: 2 / 3},
    }
    assert result.verdict == "warn"
    assert result.text == (
        "62.5 % of rows in 4 segments, longest 2 steps (episode 0), 2 of 4 recover; "
        "most in episode 1 (66.7 %)"
    )


def test_a_clean_run_has_no_segments():
    result = off_nominal(rows([5, 3]), np.zeros(8, bool))
    assert (result.verdict, result.text) == ("pass", "never")


def test_jerk_counts_changes_flips_and_reversals_within_episodes_only():
    """Steer 0.5 -0.5 0.5 | 0.9: changes 1, 1; both flip; one of one turn reverses.

    Gas 0 0.1 0.3 | 0: changes 0.1, 0.2, no turn. The jump into episode 1 is none.
    """
    action = [[0.5, 0.0], [-0.5, 0.1], [0.5, 0.3], [0.9, 0.0]]
    result = jerk(rows([3, 1], action), SCHEMA)
    assert result.values["steer"] == {"change": 1.0, "flips": 1.0, "reversals": 1.0}
    gas = {"change": pytest.approx(0.15), "flips": 0.0, "reversals": 0.0}
    assert result.values["gas"] == gas
    assert result.verdict == "warn"


def test_smooth_actions_are_not_nervous():
    """Steps of 2 / 49 and 1 / 49; steering crosses 0 on one of 49 steps."""
    ramp = np.stack([np.linspace(-1, 1, 50), np.linspace(0, 1, 50)], axis=1)
    result = jerk(rows([50], ramp), SCHEMA)
    assert result.verdict == "pass"
    assert result.text == (
        "steer changes by 0.04082 a step, turns back on 0 % of steps, flips sign on "
        "2.04 %; gas changes by 0.02041 a step, turns back on 0 % of steps"
    )


def test_a_ripple_below_a_percent_of_the_range_is_no_turn():
    """Ranges are 2 and 1: 0.019 and 0.011 to and fro are below 1 % and above."""
    ripple = np.array([[0.0, 0.0], [0.019, 0.011]] * 4)
    values = jerk(rows([8], ripple), SCHEMA).values
    assert values["steer"]["reversals"] == 0.0
    assert values["gas"]["reversals"] == 1.0


def test_single_steps_have_no_jerk():
    assert jerk(rows([1, 1]), SCHEMA) is None


def frame(**changes) -> RolloutTable:
    columns = {
        "episode": [0, 0, 1, 2, 2, 2, 3],
        "step": [0, 1, 0, 0, 1, 2, 0],
        "reward": [1.0, 2.0, 9.0, -1.0, -1.0, -1.0, 5.0],
        "terminated": [False, True, False, False, False, False, False],
        "truncated": [False, False, True, False, False, False, True],
    }
    return RolloutTable(pd.DataFrame(columns | changes), ())


def test_worst_median_and_best_episode_with_their_ends():
    """Returns 3, 9, -3, 5: mean 3.5, population std sqrt(18.75) = 4.330."""
    result = episodes(frame(info_progress=[0.1, 0.2, 0.9, 0.0, 0.0, 0.05, 0.5]))
    assert result.text == (
        "4 episodes, return 3.5 +- 4.33, 1 open, 1 terminated, 2 truncated; "
        "worst: episode 2, return -3 in 3 steps, open, progress 0.05; "
        "median: episode 0, return 3 in 2 steps, terminated, progress 0.2; "
        "best: episode 1, return 9 in 1 steps, truncated, progress 0.9"
    )
    picked = {name: result.values[name] for name in ("worst", "median", "best")}
    assert picked == {"worst": 2, "median": 0, "best": 1}


def test_a_demonstration_has_no_episode_outcomes():
    table = RolloutTable(frame().frame.drop(columns="reward"), ())
    assert episodes(table) is None


@pytest.mark.parametrize(
    ("sampled", "verdict"), [([95.0, 105.0], "pass"), ([80.0, 100.0], "warn")]
)
def test_the_sampling_gap_warns_beyond_five_percent(sampled, verdict):
    result = sampling_gap(np.array([100.0, 100.0]), np.array(sampled))
    assert result.values["gap"] == np.mean(sampled) - 100
    assert result.verdict == verdict


def test_observations_outside_their_range_or_not_finite_are_reported():
    """-3 exceeds its bound by 2, 1.5 by 0.5; one of the five values is not finite."""
    result = ranges(rows([5], obs=[[0.0], [1.0], [1.5], [-3.0], [np.nan]]), SCHEMA)
    assert result.verdict == "fail"
    assert result.values["outside"] == {"x": {"share": 0.4, "worst": -3.0}}
    assert result.values["not_finite"] == {"x": 1}
    assert ranges(rows([2], obs=[[1.0], [1.5]]), SCHEMA).verdict == "warn"
    assert ranges(rows([2], obs=[[1.0], [-1.0]]), SCHEMA).verdict == "pass"


def test_actions_beyond_their_bounds_and_flat_latents_are_saturated():
    """Steer mean 2, 1, 0.5, -1: high twice, low once. Clip to [0, 2]: 0, 1, 2, 2."""
    x = Observation("x")
    structure = Structure(
        parameters=(),
        latents=(
            Latent("bounded", Call("clip", (x, Number(0.0), Number(2.0)))),
            Latent("squashed", Call("tanh", (x,))),
            Latent("free", Call("abs", (x,))),
        ),
        heads=(),
    )
    latents = {
        "latent_bounded": np.array([0.0, 1.0, 2.0, 2.0]),
        "latent_squashed": np.array([-0.999, 0.0, 0.5, 0.98]),
        "latent_free": np.zeros(4),
    }
    mean = np.array([[2.0, 0.5], [1.0, 0.5], [0.5, 0.5], [-1.0, 0.5]])
    table = rows([4], np.clip(mean, -1, 1), mean, latents=latents)
    result = saturation(table, SCHEMA, structure)
    assert result.values == {
        "action_steer": {"low": 0.25, "high": 0.5},
        "action_gas": {"low": 0.0, "high": 0.0},
        "latent_bounded": {"low": 0.25, "high": 0.5},
        "latent_squashed": {"low": 0.25, "high": 0.0},
    }
    assert result.verdict == "pass"


def test_an_action_that_is_always_saturated_is_warned_of():
    mean = np.full((20, 2), 5.0)
    result = saturation(rows([20], np.clip(mean, -1, 1), mean), SCHEMA, None)
    assert result.verdict == "warn"
    assert "In more than 95 % of rows: action_steer, action_gas" in result.text


def demonstrated(residual: np.ndarray, x: np.ndarray | None = None) -> RolloutTable:
    """x = 0 ... 7; the policy says 0, the demonstration differs by the residual."""
    count = len(residual)
    obs = (np.arange(count, dtype=float) if x is None else x)[:, None]
    mean = np.zeros((count, 2))
    demo = np.stack([residual, np.zeros(count)], axis=1)
    policy = Normal(mean, mean + 0.1)
    return demonstration_table(obs, demo, policy, {}, SCHEMA, {}, {})


def test_residuals_in_one_region_are_located():
    """Only x = 6 and 7, the last quarter of eight rows, differ: by 0.5 each.

    Mean square 0.5 / 8 = 0.0625: rms 0.25; bias 1 / 8. The demonstration's own
    variance is 0.0625 - 0.125 ** 2 = 0.046875: explained 1 - 4 / 3.
    """
    residual = np.array([0, 0, 0, 0, 0, 0, 0.5, 0.5])
    result = residuals(demonstrated(residual), SCHEMA)
    steer = result.values["steer"]
    assert (steer["rms"], steer["bias"]) == (0.25, 0.125)
    assert steer["explained"] == pytest.approx(1 - 4 / 3)
    # Quartiles of 0 ... 7: 1.75, 3.5, 5.25.
    assert steer["regions"] == [
        {
            "column": "obs_x",
            "low": 5.25,
            "high": 7.0,
            "rows": 2,
            "rms": 0.5,
            "bias": 0.5,
            "share": 1.0,
        }
    ]
    assert result.values["gas"]["regions"] == []
    assert result.verdict == "warn"


def test_a_region_of_one_value_is_told_as_that_value():
    residual = np.array([0.5, 0.5, 0.5, 0, 0, 0, 0, 0])
    x = np.array([2.0, 2, 2, 3, 4, 5, 6, 7])
    result = residuals(demonstrated(residual, x), SCHEMA)
    assert "; where obs_x is 2 rms 0.5" in result.text


def test_residuals_spread_evenly_have_no_region():
    result = residuals(demonstrated(np.tile([0.1, -0.1], 4)), SCHEMA)
    assert result.values["steer"]["regions"] == []
    assert result.verdict == "pass"


def test_a_rollout_has_no_residuals():
    assert residuals(frame(), SCHEMA) is None
