"""The built-in diagnostics as a whole, on the table of a policy written by hand.

The policy: steer = clip(gain * offset + bias, -1, 1), gas = clip(cruise - speed, 0, 1),
with a weight `spare` that only acts where speed > 5, which never happens.
"""

from dataclasses import replace

import jax
import numpy as np
import pytest

from structjax.diagnostics.invariants import run_invariants, summary
from structjax.diagnostics.result import InvariantResult
from structjax.distributions import Categorical
from structjax.errors import StructjaxError
from structjax.language.structure import (
    Call,
    Head,
    Index,
    Latent,
    Number,
    Observation,
    Parameter,
    Structure,
    Variable,
    Weight,
)
from structjax.policy import StructuredPolicy, variables_from
from structjax.rollout import Trajectory
from structjax.schema import ActionField, Field, Schema
from structjax.table import RolloutTable, build_table

SCHEMA = Schema(
    observations=(
        Field("offset", None, "m", -2.0, 2.0, "to the right", mirror=-1),
        Field("speed", None, "m/s", 0.0, 1.0, "forward", mirror=1),
        Field("wheels", 2, "", -2.0, 2.0, "left, right", 1, mirror_order=(1, 0)),
    ),
    actions=(
        ActionField("steer", "right", mirror=-1),
        ActionField("gas", "forward", low=0.0, mirror=1),
    ),
)
VALUES = {
    "gain": -0.8,
    "bias": 0.0,
    "cruise": 0.6,
    "spare": 1.0,
    "std_steer": 0.1,
    "std_gas": 0.1,
}


def call(operator: str, *arguments):
    return Call(operator, arguments)


def structure(steer=None) -> Structure:
    """With another steering term instead of `bias`, if one is given."""
    lane = call("mul", Weight("gain"), Observation("offset"))
    raw = call("add", lane, steer or Weight("bias"))
    spare = call(
        "where",
        call("gt", Observation("speed"), Number(5.0)),
        Weight("spare"),
        Number(0.0),
    )
    target = call("add", call("sub", Weight("cruise"), Observation("speed")), spare)
    difference = call(
        "sub", Index(Observation("wheels"), 0), Index(Observation("wheels"), 1)
    )
    return Structure(
        parameters=tuple(Parameter(name, value) for name, value in VALUES.items()),
        latents=(
            Latent("steer", call("clip", raw, Number(-1.0), Number(1.0))),
            Latent("slip", difference),
            Latent("limit", call("mul", Number(2.0), Weight("cruise"))),
            Latent("fast", call("gt", Observation("speed"), Number(5.0)), boolean=True),
            Latent("gas", call("clip", target, Number(0.0), Number(1.0))),
        ),
        heads=(
            Head("steer", "normal", (Variable("steer"), Weight("std_steer"))),
            Head("gas", "normal", (Variable("gas"), Weight("std_gas"))),
        ),
    )


class Case:
    """A policy, and its table over a random walk of 2 episodes of 40 steps."""

    def __init__(self, program: Structure | None = None, **values: float) -> None:
        self.structure = program or structure()
        self.policy = StructuredPolicy(self.structure, SCHEMA)
        self.values = VALUES | values
        self.variables = variables_from(self.structure, self.values)
        walk = np.random.default_rng(0).normal(size=(41, 2, 4)).cumsum(axis=0)
        # Within the ranges: offset and wheels in [-2, 2], speed in [0, 1].
        walk = np.tanh(walk / 4) * np.array([2.0, 0.5, 2.0, 2.0])[None, None]
        walk += np.array([0.0, 0.5, 0.0, 0.0])[None, None]
        self.walk = walk.astype(np.float32)
        self.table = self.tabulate(self.walk[:-1], self.walk[1:])

    def tabulate(self, obs: np.ndarray, next_obs: np.ndarray) -> RolloutTable:
        apply = jax.vmap(jax.vmap(lambda o: self.policy.apply(self.variables, o)))
        distribution, latents = apply(obs)
        mean = np.asarray(distribution.mean)
        shape = mean.shape[:2]
        run = Trajectory(
            obs=obs,
            action=mean,
            environment_action=np.clip(mean, [[[-1, 0]]], [[[1, 1]]]),
            distribution=distribution,
            log_prob=np.asarray(distribution.log_prob(mean)),
            reward=np.ones(shape),
            terminated=np.zeros(shape, bool),
            truncated=np.arange(shape[0])[:, None] == np.full((1, 2), shape[0] - 1),
            valid=np.ones(shape, bool),
            next_obs=next_obs,
            latents=latents,
            info={"on_road": np.ones(shape)},
        )
        return build_table(run, SCHEMA, self.values, {}, metadata={"mode": "mean"})

    def run(self, table: RolloutTable | None = None, **options: object):
        results = run_invariants(
            table or self.table,
            schema=SCHEMA,
            policy=self.policy,
            variables=self.variables,
            structure=self.structure,
            **options,
        )
        return {result.name: result for result in results}


@pytest.fixture(scope="module")
def case() -> Case:
    return Case()


@pytest.fixture(scope="module")
def results(case):
    return case.run()


def edited(table: RolloutTable, **columns: np.ndarray) -> RolloutTable:
    return replace(table, frame=table.frame.assign(**columns))


def shifted(table: RolloutTable, steps: int, prefix: str) -> RolloutTable:
    """The columns of one prefix moved by whole rows, the ends repeated."""
    frame = table.frame
    names = [name for name in frame if name.startswith(prefix)]
    moved = {n: frame[n].shift(-steps).ffill().bfill() for n in names}
    return edited(table, **moved)


def test_a_sound_table_fails_nothing_and_warns_of_the_dead_weight(results):
    verdicts = {name: result.verdict for name, result in results.items()}
    assert verdicts == {
        "alignment": "pass",
        "liveness": "warn",
        "parity": "pass",
        "copycat": "pass",
        "continuity": "pass",
        "reconstruction": "pass",
        "ranges": "pass",
        "saturation": "pass",
        "jerk": "pass",
        "episodes": "pass",
        "off_track": "pass",
    }


@pytest.mark.parametrize("steps", [1, -1])
def test_observations_shifted_by_a_step_are_rejected_and_named(case, steps):
    result = case.run(shifted(case.table, steps, "obs_"))["alignment"]
    assert result.verdict == "fail"
    assert result.values["shift"] == steps
    where = {1: "one step ahead of", -1: "one step behind"}[steps]
    assert f"the observations are {where} the rest of the row" in result.text


@pytest.mark.parametrize("steps", [1, -1])
def test_shifted_observations_with_their_successors_are_rejected_too(case, steps):
    """Continuity still holds inside an episode; only the recomputation can tell."""
    table = shifted(shifted(case.table, steps, "obs_"), steps, "next_obs_")
    assert case.run(table)["alignment"].verdict == "fail"


@pytest.mark.parametrize("steps", [1, -1])
def test_shifted_latents_are_rejected(case, steps):
    result = case.run(shifted(case.table, steps, "latent_"))["alignment"]
    assert result.verdict == "fail"


def test_next_observations_of_another_row_are_rejected(case):
    result = case.run(shifted(case.table, 1, "next_obs_"))["continuity"]
    assert result.verdict == "fail"


def test_other_weights_than_the_tables_are_rejected(case):
    other = Case(gain=-0.7)
    assert other.run(case.table)["alignment"].verdict == "fail"


def test_a_table_of_another_program_is_rejected(case):
    frame = case.table.frame.drop(columns="latent_slip")
    columns = tuple(c for c in case.table.columns if c.name != "latent_slip")
    result = case.run(replace(case.table, frame=frame, columns=columns))["alignment"]
    assert result.verdict == "fail"
    assert result.values["unmatched"] == ["latent_slip"]


def test_an_action_that_is_not_the_clipped_one_is_rejected(case):
    wrong = case.table.frame["action_steer"] * 0.5
    result = case.run(edited(case.table, action_steer=wrong))["reconstruction"]
    assert result.verdict == "fail"
    assert "clipping" in result.text


def test_a_wrong_log_probability_is_rejected(case):
    # Half the std and the old log_prob: at the mean, log 2 too small per action.
    narrow = case.table.frame["action_gas_std"] * 0.5
    result = case.run(edited(case.table, action_gas_std=narrow))["reconstruction"]
    assert result.verdict == "fail"
    assert "log_prob" in result.text


def test_liveness_names_the_dead_weight_and_the_stuck_latent(results):
    """`limit` is constant by construction, `fast` because speed never exceeds 5."""
    values = results["liveness"].values
    assert values["dead"] == ["spare"]
    assert values["constant"] == ["latent_fast"]
    assert values["active_share"]["std_gas"] == 1.0


def test_a_bias_breaks_the_parity_of_steering():
    """Unclipped: even part = bias = 0.2, odd part = gain * offset."""
    # |gain * offset| <= 0.2 * 2, so that with the bias nothing is clipped.
    biased = Case(bias=0.2, gain=-0.2)
    result = biased.run()["parity"]
    offset = biased.table.frame["obs_offset"].to_numpy(np.float64)
    odd = np.mean((0.2 * offset) ** 2)
    assert result.verdict == "warn"
    expected = 0.04 / (0.04 + odd)
    assert result.values["wrong_share"]["steer"] == pytest.approx(expected, rel=1e-4)
    assert result.values["wrong_share"]["gas"] == 0
    terms = result.values["even_terms"]["steer"]
    assert terms == {"bias": pytest.approx(expected**0.5, rel=1e-4)}


def test_damping_with_an_absolute_value_is_an_even_term():
    """-|w| * omega with omega taken as a magnitude: even, as in the paper."""
    damping = call("mul", Number(-0.3), call("abs", Observation("offset")))
    result = Case(structure(damping)).run()["parity"]
    assert result.verdict == "warn"
    assert list(result.values["even_terms"]["steer"]) == ["mul(-0.3, abs(obs.offset))"]


def test_parity_classes_follow_signs_and_permutations(results):
    """The wheels are exchanged by the mirror, so their difference is odd."""
    assert results["parity"].values["classes"] == {
        "latent_steer": "odd",
        "latent_slip": "odd",
        "latent_limit": "even",
        "latent_fast": "zero",
        "latent_gas": "even",
    }


def test_without_mirror_signs_there_is_no_parity(case):
    fields = tuple(replace(f, mirror=None) for f in SCHEMA.observations)
    schema = replace(SCHEMA, observations=fields)
    results = run_invariants(
        case.table,
        schema=schema,
        policy=case.policy,
        variables=case.variables,
        structure=case.structure,
    )
    assert "parity" not in {result.name for result in results}


def test_an_observation_that_repeats_the_last_action_is_a_copycat_feature():
    """The left wheel shows the previous steering, and steering reads it."""
    program = structure(call("mul", Number(0.5), Index(Observation("wheels"), 0)))
    case = Case(program)
    # Fill the left wheel step by step with minus the steering of the step before.
    obs = case.walk.copy()
    obs[:, :, 0] = np.random.default_rng(1).uniform(-1, 1, (41, 2))
    obs[0, :, 2] = 0.0
    for t in range(40):
        steer = np.clip(-0.8 * obs[t, :, 0] + 0.5 * obs[t, :, 2], -1, 1)
        obs[t + 1, :, 2] = -steer
    result = case.run(case.tabulate(obs[:-1], obs[1:]))["copycat"]
    assert result.verdict == "warn"
    (found,) = result.values["found"]
    assert (found["column"], found["action"]) == ("obs_wheels_0", "steer")
    assert found["correlation"] == pytest.approx(-1.0, abs=1e-5)


def test_a_slow_feature_under_proportional_control_is_no_copycat():
    """Its correlation with the previous action is its own slowness."""
    case = Case()
    obs = case.walk.copy()
    obs[:, :, 0] = np.sin(np.arange(41) / 20)[:, None]
    before, now = obs[:-2, 0, 0], obs[1:-1, 0, 0]
    assert np.corrcoef(-0.8 * before, now)[0, 1] < -0.95
    assert case.run(case.tabulate(obs[:-1], obs[1:]))["copycat"].verdict == "pass"


def test_sampled_returns_are_held_against_the_tables(case):
    """Each episode returns 40."""
    result = case.run(returns_sampled=np.array([10.0, 20.0]))["sampling_gap"]
    assert result.values == {"gap": -25.0, "mean": 40.0, "sampled": 15.0}
    assert result.verdict == "warn"


def test_a_discrete_policy_passes_without_a_structure():
    schema = Schema(
        SCHEMA.observations[:1],
        (ActionField("push", "direction", choices=("left", "right")),),
    )

    class Threshold:
        def apply(self, variables, obs):
            slope = variables["params"]["slope"] * obs[0]
            return Categorical(jax.numpy.stack([-slope, slope])), {}

    policy, variables = Threshold(), {"params": {"slope": jax.numpy.float32(2.0)}}
    obs = np.linspace(-1, 1, 12, dtype=np.float32).reshape(12, 1, 1)
    distribution = jax.vmap(jax.vmap(lambda o: policy.apply(variables, o)[0]))(obs)
    action = np.asarray(distribution.mode())
    flags = np.zeros((12, 1), bool)
    run = Trajectory(
        obs, action, action, distribution, flags * 0.0, flags * 0.0, flags, flags,
        ~flags, np.roll(obs, -1, axis=0), {}, {},
    )  # fmt: skip
    results = run_invariants(
        build_table(run, schema, {"slope": 2.0}, {}),
        schema=schema,
        policy=policy,
        variables=variables,
    )
    verdicts = {result.name: result.verdict for result in results}
    assert set(verdicts.values()) == {"pass"}
    assert set(verdicts) == {
        "alignment", "liveness", "continuity", "ranges", "jerk", "episodes",
    }  # fmt: skip


def test_without_a_policy_the_other_invariants_still_run(case):
    results = run_invariants(case.table, schema=SCHEMA, structure=case.structure)
    names = [result.name for result in results]
    assert "ranges" in names
    assert "alignment" not in names


def test_a_table_of_another_task_or_without_rows_is_refused(case):
    empty = replace(case.table, frame=case.table.frame.iloc[:0])
    with pytest.raises(StructjaxError, match="no rows"):
        run_invariants(empty, schema=SCHEMA)
    other = replace(case.table, frame=case.table.frame.drop(columns="obs_speed"))
    with pytest.raises(StructjaxError, match="lacks the columns obs_speed"):
        run_invariants(other, schema=SCHEMA)


def test_the_summary_is_one_line_per_result():
    results = [
        InvariantResult("ranges", "pass", "fine"),
        InvariantResult("jerk", "warn", "steer changes by 0.5 a step"),
    ]
    assert summary(results) == (
        "[pass] ranges: fine\n[warn] jerk: steer changes by 0.5 a step"
    )


def test_equal_tables_give_equal_summaries(case, results):
    assert summary(case.run().values()) == summary(results.values())
