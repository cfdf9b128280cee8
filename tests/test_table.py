"""The rollout table: rows, names, types, descriptions, and its life on disk."""

from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest

from structjax.distributions import Categorical, Normal
from structjax.errors import StructjaxError
from structjax.language.structure import Latent, Number, Parameter, Structure
from structjax.rollout import Trajectory
from structjax.schema import ActionField, Field, Schema
from structjax.table import (
    build_table,
    demonstration_table,
    load_table,
    save_table,
)

SCHEMA = Schema(
    observations=(
        Field("speed", None, "m/s", 0.0, 9.0, "speed over ground"),
        Field("wheel.spin", 2, "", -np.inf, np.inf, "spin", elements=("l", "r")),
    ),
    actions=(
        ActionField("steer", "left or right", low=-1.0, high=1.0),
        ActionField("gas", "throttle", low=0.0, high=1.0),
    ),
)
CHOICE = Schema(
    observations=SCHEMA.observations[:1],
    actions=(ActionField("push", "direction", choices=("left", "go right")),),
)
STRUCTURE = Structure(
    parameters=(Parameter("zeta", 0.5, low=0.0), Parameter("alpha", 2.0)),
    latents=(
        Latent("turn", Number(0.0)),
        Latent("fast", Number(0.0), boolean=True),
        Latent("both", Number(0.0), size=2),
    ),
    heads=(),
)
T, B = 4, 2
# Episode 0 takes two steps, episode 1 all four.
VALID = np.array([[1, 1], [1, 1], [0, 1], [0, 1]], bool)


def stamp(*shape: int) -> np.ndarray:
    """`[T, B, ...]` whose entries tell where they come from: 10 t + b (+ i / 10)."""
    values = 10.0 * np.arange(T)[:, None] + np.arange(B)[None]
    if not shape:
        return values.astype(np.float32)
    inner = np.arange(shape[0]) / 10
    return (values[..., None] + inner[None, None]).astype(np.float32)


def trajectory(**changes: object) -> Trajectory:
    base = Trajectory(
        obs=stamp(3),
        action=stamp(2) + 100,
        environment_action=stamp(2) + 200,
        distribution=Normal(stamp(2) + 300, stamp(2) + 400),
        log_prob=stamp() + 500,
        reward=stamp() + 600,
        terminated=stamp() == 10,
        truncated=stamp() == 31,
        valid=VALID,
        next_obs=stamp(3) + 700,
        latents={"both": stamp(2), "fast": stamp() * 0, "turn": stamp() + 800},
        info={"progress": stamp() + 900, "vector": stamp(3)},
    )
    return base._replace(**changes)


def table(**options: object):
    weights = {"alpha": 2.0, "zeta": 0.5}
    docs = {"turn": "how  much\nto turn", "alpha": "gain"}
    return build_table(trajectory(), SCHEMA, weights, docs, **options)


def test_only_steps_taken_are_rows_episode_after_episode():
    frame = table().frame
    assert frame["episode"].tolist() == [0, 0, 1, 1, 1, 1]
    assert frame["step"].tolist() == [0, 1, 0, 1, 2, 3]
    # stamp: 10 t + b
    assert frame["log_prob"].tolist() == [500, 510, 501, 511, 521, 531]
    assert frame["terminated"].tolist() == [False, True, False, False, False, False]
    assert frame["truncated"].tolist() == [False] * 5 + [True]


def test_columns_stand_in_the_documented_order_with_the_values_of_their_row():
    result = table(structure=STRUCTURE)
    # Row 3 is episode 1, step 1: stamp 11.
    expected = {
        "episode": 1,
        "step": 1,
        "obs_speed": 11.0,
        "obs_wheel_spin_0": 11.1,
        "obs_wheel_spin_1": 11.2,
        "latent_turn": 811,
        "latent_fast": 0,
        "latent_both_0": 11.0,
        "latent_both_1": 11.1,
        "weight_zeta": 0.5,
        "weight_alpha": 2.0,
        "action_steer_mean": 311.0,
        "action_steer_std": 411.0,
        "action_steer_sampled": 111.0,
        "action_steer": 211.0,
        "action_gas_mean": 311.1,
        "action_gas_std": 411.1,
        "action_gas_sampled": 111.1,
        "action_gas": 211.1,
        "log_prob": 511,
        "reward": 611,
        "terminated": False,
        "truncated": False,
        "next_obs_speed": 711.0,
        "next_obs_wheel_spin_0": 711.1,
        "next_obs_wheel_spin_1": 711.2,
        "info_progress": 911,
    }
    row = result.frame.iloc[3].to_dict()
    assert list(row) == list(expected)
    assert row == pytest.approx(expected, rel=1e-6)
    assert [column.name for column in result.columns] == list(expected)


def test_types_are_float32_but_for_indices_and_flags():
    kinds = table().frame.dtypes.astype(str).to_dict()
    assert (kinds.pop("episode"), kinds.pop("step")) == ("int32", "int32")
    assert (kinds.pop("terminated"), kinds.pop("truncated")) == ("bool", "bool")
    assert set(kinds.values()) == {"float32"}


def test_infos_can_be_selected():
    frame = table(info={}).frame
    assert not [name for name in frame if name.startswith("info_")]


def test_a_discrete_action_has_logits_and_an_integer():
    run = trajectory(
        obs=stamp(1),
        next_obs=stamp(1),
        action=np.ones((T, B), int),
        environment_action=np.ones((T, B), int),
        distribution=Categorical(stamp(2)),
        latents={},
        info={},
    )
    frame = build_table(run, CHOICE, {}, {}).frame
    names = [name for name in frame if name.startswith("action_")]
    assert names == [
        "action_push",
        "action_push_logit_left",
        "action_push_logit_go_right",
    ]
    assert frame["action_push"].dtype == np.int32
    assert frame["action_push_logit_go_right"][3] == pytest.approx(11.1)


def test_a_demonstration_has_residuals_against_the_clipped_mean():
    obs = np.zeros((3, 3))
    demo = np.array([[0.5, 0.25], [1.0, 0.0], [-1.0, 0.5]])
    mean = np.array([[0.25, 0.25], [3.0, -2.0], [-0.5, 0.75]])
    policy = Normal(mean, np.full((3, 2), 0.1))
    result = demonstration_table(obs, demo, policy, {}, SCHEMA, {}, {})
    frame = result.frame
    assert frame["episode"].tolist() == [0, 0, 0]
    assert frame["step"].tolist() == [0, 1, 2]
    assert frame["demo_action_steer"].tolist() == [0.5, 1.0, -1.0]
    # Clipped means: steer 0.25, 1, -0.5 and gas 0.25, 0, 0.75.
    assert frame["residual_steer"].tolist() == [0.25, 0.0, -0.5]
    assert frame["residual_gas"].tolist() == [0.0, 0.0, -0.25]
    assert "next_obs_speed" not in frame
    assert result.metadata["mode"] == "demonstration"


def test_a_discrete_demonstration_flags_other_choices():
    policy = Categorical(np.array([[0.0, 1.0], [1.0, 0.0]]))
    result = demonstration_table(
        np.zeros((2, 1)), np.array([1, 1]), policy, {}, CHOICE, {}, {}
    )
    assert result.frame["demo_action_push"].tolist() == [1, 1]
    assert result.frame["residual_push"].tolist() == [0.0, 1.0]


def test_a_saved_table_comes_back_equal(tmp_path):
    saved = table(structure=STRUCTURE, task="toy", metadata={"mode": "mean"})
    path = tmp_path / "r0.parquet"
    save_table(saved, path)
    loaded = load_table(path)
    pd.testing.assert_frame_equal(loaded.frame, saved.frame)
    assert loaded.columns == saved.columns
    assert (loaded.task, loaded.metadata) == ("toy", {"mode": "mean"})
    assert [entry.name for entry in tmp_path.iterdir()] == ["r0.parquet"]


def test_a_failed_save_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "r0.parquet"
    save_table(table(), path)
    before = path.read_bytes()

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(StructjaxError, match="No space left on device"):
        save_table(table(), path)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["r0.parquet"]


class Bad(NamedTuple):
    content: bytes | None
    message: str


@pytest.mark.parametrize(
    "bad",
    [
        Bad(None, "there is no such file"),
        Bad(b"episode,step\n0,0\n", "it is not a Parquet file"),
        Bad(b"PAR1 damaged PAR1", "it is not a Parquet file"),
    ],
)
def test_what_is_no_table_is_refused(tmp_path, bad):
    path = tmp_path / "x.parquet"
    if bad.content is not None:
        path.write_bytes(bad.content)
    with pytest.raises(StructjaxError, match=bad.message):
        load_table(path)


def test_a_foreign_parquet_file_is_refused(tmp_path):
    path = tmp_path / "x.parquet"
    pd.DataFrame({"a": [1]}).to_parquet(path)
    with pytest.raises(StructjaxError, match="without a structjax description"):
        load_table(path)
