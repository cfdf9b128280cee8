"""The example programs drive their tasks as written, and can be fitted."""

from pathlib import Path

import jax
import numpy as np
import pytest

from structjax.imitation import ImitationConfig, fit_best
from structjax.language.parse import parse
from structjax.policy import StructuredPolicy, variables_from, weights
from structjax.rollout import collect, play
from structjax.tasks.classic import cartpole, pendulum

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"


def _load(task):
    program = parse((EXAMPLES / f"{task.name}.py").read_text(), task.schema)
    assert program.warnings == ()
    return StructuredPolicy(program.structure, task.schema)


def _returns(policy, variables, task):
    key = jax.random.key(0)
    return play(policy, variables, task, task.seeds["test"], key=key).returns


def test_the_cartpole_program_never_falls():
    task = cartpole()
    policy = _load(task)
    returns = _returns(policy, variables_from(policy.structure, {}), task)
    assert returns.tolist() == [500.0] * 10


def test_the_pendulum_program_swings_up_and_holds():
    task = pendulum()
    policy = _load(task)
    run = collect(
        policy,
        variables_from(policy.structure, {}),
        task,
        task.seeds["test"],
        key=jax.random.key(0),
    )
    # Hanging still costs pi^2 a step, about -1,970; every episode must end upright.
    assert run.reward.sum(0).mean() > -300
    assert (run.next_obs[-1, :, 0] > 0.99).all()


@pytest.mark.parametrize(
    ("make", "spoilt", "dead"),
    [
        (pendulum, {"pump": 0.005, "stiffness": 2.0, "damping": 0.2}, ("near_top",)),
        (cartpole, {"lean_gain": 0.05, "fall_gain": 0.05}, ()),
    ],
)
def test_a_spoilt_program_is_mended_by_imitation(make, spoilt, dead):
    task = make()
    policy = _load(task)
    written = variables_from(policy.structure, {})
    key = jax.random.key(1)
    seeds = [4000, 4001]
    shown = collect(policy, written, task, seeds, key=key, mode="sampled")
    observations = shown.obs.reshape(-1, task.schema.observation_size)
    actions = shown.action.reshape(len(observations), -1)
    structure = policy.structure
    start = variables_from(structure, spoilt)
    bad = _returns(policy, start, task).mean()
    stacked = jax.tree.map(lambda leaf: leaf[None], start)
    fitted = fit_best(
        policy,
        observations,
        actions,
        config=ImitationConfig(restarts=1, num_updates=600),
        key=key,
        starts=stacked,
    )
    good = _returns(policy, written, task).mean()
    mended = _returns(policy, fitted.variables, task).mean()
    # At least nine tenths of what was lost comes back.
    assert good - mended < 0.1 * (good - bad)
    assert good - bad > 100
    # The threshold stands in a condition only: no gradient, so it stays as written.
    assert fitted.report.dead == dead
    for name in dead:
        np.testing.assert_allclose(
            weights(policy, fitted.variables)[name], weights(policy, written)[name]
        )
