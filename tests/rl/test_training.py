"""The host's side of training: resume, checkpoints, counts, tables, refusals."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from toy import HORIZON, PROGRAM, SCHEMA, toy_task

from structjax.errors import ProgramFailed, StructjaxError
from structjax.language.parse import parse
from structjax.policy import StructuredPolicy, variables_from
from structjax.rl.config import RLConfig
from structjax.rl.plan import Plan
from structjax.rl.presets import recipe
from structjax.rl.saving import load_tree, save_tree
from structjax.rl.trainer import repeat, stack
from structjax.rl.training import Training
from structjax.runs import RunDirectory

TASK = toy_task()
STRUCTURE = parse(PROGRAM, SCHEMA).structure
POLICY = StructuredPolicy(STRUCTURE, SCHEMA, 0.05)
CONFIG = RLConfig(groups=2, episodes=3, epochs=2, learning_rate=0.05)
EACH = 6  # episodes an update
RUNS = 2


def plan(resets=12 * EACH, task=TASK, **changes):
    algorithm, scalars = recipe(POLICY, task, CONFIG, resets, RUNS)
    labels = tuple({"training_seed": seed} for seed in (3, 8))
    options = {"milestones": (10 * EACH,), "tracks": task.seeds["training"]}
    return Plan(algorithm, POLICY, task, scalars, labels, resets, **(options | changes))


def start(gain=0.3):
    return repeat(variables_from(STRUCTURE, {"gain": gain}), RUNS)


def created(path):
    return RunDirectory.create(path, kind="rl", task="toy", config={})


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """An uninterrupted run: (directory, outcome, ledger)."""
    path = tmp_path_factory.mktemp("whole") / "run"
    with created(path) as directory:
        outcome = Training(directory, plan(), start()).run()
        return path, outcome, directory.ledger


def without_seconds(table):
    return table.drop(columns="seconds")


@pytest.mark.parametrize("stop", [5, 10])
def test_a_resumed_run_is_the_uninterrupted_one_bit_for_bit(tmp_path, whole, stop):
    def interrupt(done, score):
        if done == stop:
            raise KeyboardInterrupt

    path = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt), created(path) as directory:
        Training(directory, plan(), start(), interrupt).run()
    with RunDirectory.resume(path, config={}) as directory:
        outcome = Training(directory, plan(), start()).run()
        assert directory.ledger == whole[2]
    expected = whole[1]
    pd.testing.assert_frame_equal(
        without_seconds(outcome.curve), without_seconds(expected.curve)
    )
    pd.testing.assert_frame_equal(outcome.evaluations, expected.evaluations)
    for name, stacked in expected.checkpoints.items():
        same = jax.tree.map(np.array_equal, stacked, outcome.checkpoints[name])
        assert all(jax.tree.leaves(same)), name


def test_a_kill_between_the_state_and_its_entry_loses_one_chunk(tmp_path, whole):
    path = tmp_path / "run"
    with created(path) as directory:
        Training(directory, plan(), start()).run()
    folder = path / "checkpoints"
    for name in ("evaluation.json", "chunk12.json"):
        (folder / name).unlink()
    with RunDirectory.resume(path, config={}) as directory:
        outcome = Training(directory, plan(), start()).run()
    pd.testing.assert_frame_equal(outcome.evaluations, whole[1].evaluations)


def test_a_first_step_computed_again_does_not_lead_the_later_ones(tmp_path, whole):
    """As the message about a damaged result advises: delete it to compute it again."""
    path = tmp_path / "run"
    with created(path) as directory:
        Training(directory, plan(), start()).run()
    folder = path / "checkpoints"
    for name in ("start.json", "evaluation.json", "chunk12.json"):
        (folder / name).unlink()
    with RunDirectory.resume(path, config={}) as directory:
        outcome = Training(directory, plan(), start()).run()
    pd.testing.assert_frame_equal(outcome.evaluations, whole[1].evaluations)
    assert outcome.best_update.tolist() == whole[1].best_update.tolist()


def test_every_reset_and_step_is_counted(whole):
    """No episode of this task ends before its 5 steps."""
    path, _, ledger = whole
    looks = 13  # after 0 to 12 updates, all among the dense ones
    selection, test = len(TASK.seeds["selection"]), len(TASK.seeds["test"])
    checkpoints, modes = 5, 2
    resets = {
        "training": RUNS * 12 * EACH,
        "selection": RUNS * looks * selection,
        "evaluation": RUNS * checkpoints * modes * test,
    }
    assert {k: n for k, n in ledger.resets.items() if n} == resets
    assert {k: n for k, n in ledger.env_steps.items() if n} == {
        k: HORIZON * n for k, n in resets.items()
    }
    curve = pd.read_csv(path / "curve.csv")
    assert list(curve["update"]) == [*range(13)] * RUNS
    assert list(curve["resets"]) == [EACH * n for n in range(13)] * RUNS
    assert list(curve["env_steps"]) == [EACH * HORIZON * n for n in range(13)] * RUNS
    assert list(curve["gradient_steps"]) == [2 * n for n in range(13)] * RUNS
    flops = curve["flops"] / curve["update"].clip(1)
    assert flops.iloc[0] == 0
    assert (flops[curve["update"] > 0] > 12 * EACH).all()
    assert flops[curve["update"] > 0].max() == pytest.approx(flops[1])
    assert (curve.groupby("training_seed")["seconds"].diff().dropna() >= 0).all()
    evaluations = pd.read_csv(path / "evaluations.csv")
    names = {"start", "resets60", "best60", "final", "best"}
    assert set(evaluations["checkpoint"]) == names
    assert len(evaluations) == resets["evaluation"]


def test_the_best_is_the_best_of_the_curve_and_never_worse_than_the_start(whole):
    _, outcome, _ = whole
    for run, (_, curve) in enumerate(outcome.curve.groupby("training_seed")):
        best = curve["mean"].to_numpy().argmax()
        assert outcome.best_update[run] == curve["update"].to_numpy()[best]
    returns = outcome.evaluations[outcome.evaluations["mode"] == "mean"]
    means = returns.groupby("checkpoint")["return"].mean()
    # A gain of 0.3 learns towards 2, which reaches the origin in one step.
    assert means["best"] > means["start"] + 0.1


def test_a_start_that_training_spoils_stays_the_best(tmp_path):
    """With a huge step size every update leaves the optimum gain of 2."""
    config = RLConfig(groups=1, episodes=2, epochs=1, learning_rate=5.0)
    algorithm, scalars = recipe(POLICY, TASK, config, 4, RUNS)
    labels = tuple({"training_seed": seed} for seed in (0, 1))
    spoilt = Plan(
        algorithm, POLICY, TASK, scalars, labels, 4, tracks=TASK.seeds["training"]
    )
    with created(tmp_path / "run") as directory:
        outcome = Training(directory, spoilt, start(gain=2.0)).run()
    assert list(outcome.best_update) == [0, 0]


def test_the_curve_of_a_run_is_that_of_a_run_alone(tmp_path, whole):
    """Seeds side by side do not see each other."""
    algorithm, scalars = recipe(POLICY, TASK, CONFIG, 12 * EACH, 1)
    alone = Plan(
        algorithm,
        POLICY,
        TASK,
        scalars,
        ({"training_seed": 8},),
        12 * EACH,
        tracks=TASK.seeds["training"],
    )
    first = jax.tree.map(lambda leaf: leaf[:1], start())
    with created(tmp_path / "run") as directory:
        outcome = Training(directory, alone, first).run()
    beside = whole[1].curve.query("training_seed == 8")
    np.testing.assert_allclose(outcome.curve["mean"], beside["mean"], rtol=1e-4)


def test_only_the_states_that_a_resume_can_need_are_kept(whole):
    names = {path.name for path in (whole[0] / "checkpoints").glob("*.npz")}
    assert names == {"state10.npz", "state12.npz", "kept10.npz", "kept12.npz"}


def test_a_reward_that_is_not_finite_is_the_tasks_fault(tmp_path):
    def nan_beyond(key, state, action, params):
        usual = TASK.step(key, state, action, params)
        reward = jnp.where(jnp.abs(action[0]) > 0.45, jnp.nan, usual.reward)
        return usual._replace(reward=reward)

    task = toy_task(nan_beyond)
    with (
        pytest.raises(ProgramFailed, match=r"toy.*not finite in training seed [38]"),
        created(tmp_path / "run") as directory,
    ):
        Training(directory, plan(task=task), start()).run()


def fails(beyond):
    """Training starts at 2, all else below 1; a push of 0.95 beyond a place is NaN."""

    def initial(seeds):
        params, starts = TASK.initial(seeds)
        return params, starts + 2.0 * (seeds[0] >= 10000)

    def step(key, state, action, params):
        usual = TASK.step(key, state, action, params)
        broken = (state[0] > beyond) & (jnp.abs(action[0]) > 0.95)
        return usual._replace(reward=jnp.where(broken, jnp.nan, usual.reward))

    return replace(toy_task(step), initial=initial)


def gains(*values):
    return stack([variables_from(STRUCTURE, {"gain": gain}) for gain in values])


@pytest.mark.parametrize(
    ("beyond", "update"),
    [
        # 5 * 2 is beyond 0.95, 0.05 * 2 is not: the first training return of run 1.
        (1.5, 1),
        # And in selection episodes, which begin at up to 0.9: its start.
        (0.5, 0),
    ],
)
def test_a_run_that_fails_leaves_the_others(tmp_path, beyond, update):
    task = fails(beyond)
    with created(tmp_path / "run") as directory:
        outcome = Training(directory, plan(task=task), gains(0.05, 5.0)).run()
    with created(tmp_path / "beside") as directory:
        beside = Training(directory, plan(task=task), gains(0.05, 0.05)).run()
    assert dict(outcome.failed) == {1: update}
    first, failed = (outcome.curve.query(f"training_seed == {s}") for s in (3, 8))
    whole = beside.curve.query("training_seed == 3")
    assert without_seconds(first).equals(without_seconds(whole))
    lost = failed["update"] >= update
    for column in ("mean", "std_ddof0", "worst"):
        assert failed[column][lost].isna().all()
        assert failed[column][~lost].notna().all()
    assert "failed" not in outcome.curve
    found = outcome.evaluations.set_index(["training_seed", "checkpoint"])["return"]
    for name in ("resets60", "best60", "final", "best"):
        assert found[8, name].isna().all()
        assert outcome.lost[name] == {1}
    assert found[8, "start"].isna().all() == (update == 0)
    assert found[3].notna().all()
    written = pd.read_csv(tmp_path / "run" / "evaluations.csv")
    assert written["return"].isna().sum() == found.isna().sum()


def test_a_resumed_run_knows_which_runs_had_failed(tmp_path):
    task, variables = fails(1.5), gains(0.05, 5.0)
    with created(tmp_path / "whole") as directory:
        whole = Training(directory, plan(task=task), variables).run()

    def interrupt(done, score):
        assert np.isfinite(score)
        if done == 10:
            raise KeyboardInterrupt

    path = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt), created(path) as directory:
        Training(directory, plan(task=task), variables, interrupt).run()
    with RunDirectory.resume(path, config={}, task="toy") as directory:
        again = Training(directory, plan(task=task), variables).run()
    assert again.failed == whole.failed == {1: 1}
    assert again.evaluations.equals(whole.evaluations)


@pytest.mark.parametrize(
    ("beyond", "message"),
    [
        (1.5, "not finite in training seed 3, and by now in all others"),
        (0.5, "the untrained policy has a return that is not finite on"),
    ],
)
def test_where_every_run_fails_nothing_is_trained(tmp_path, beyond, message):
    with (
        pytest.raises(ProgramFailed, match=message),
        created(tmp_path / "run") as directory,
    ):
        Training(directory, plan(task=fails(beyond)), gains(5.0, 6.0)).run()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"resets": EACH - 1}, "5 resets are fewer than the 6 of one update"),
        ({"milestones": (7,)}, "milestone 7 resets"),
        ({"milestones": (13 * EACH,)}, "milestone 78 resets"),
        ({"tracks": range(900, 1001)}, "training seed 1000 is one of the test seeds"),
        ({"tracks": range(2100, 2105)}, "2100 is one of the selection seeds"),
        ({"tracks": range(2000, 2001)}, "2000 is one of the gate seeds"),
    ],
)
def test_a_plan_that_cannot_be_honest_is_refused(changes, message):
    with pytest.raises(StructjaxError, match=message):
        plan(**changes)


def test_a_checkpoint_of_another_policy_is_refused(tmp_path):
    path = tmp_path / "state.npz"
    save_tree(path, {"a": np.zeros(3, np.float32), "key": jax.random.key(1)})
    back = load_tree(path, {"a": np.ones(3, np.float32), "key": jax.random.key(0)})
    assert jax.random.key_data(back["key"]).tolist() == [0, 1]
    with pytest.raises(StructjaxError, match="does not belong to this policy"):
        load_tree(path, {"a": np.zeros(4, np.float32), "key": jax.random.key(0)})
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(StructjaxError, match="cannot read checkpoint"):
        load_tree(path, {"a": np.zeros(3, np.float32), "key": jax.random.key(0)})
