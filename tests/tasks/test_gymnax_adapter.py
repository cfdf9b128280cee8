"""Tasks from gymnax environments: equal to the environment, and checked against it."""

from dataclasses import replace

import gymnax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from structjax.distributions import Categorical, Normal
from structjax.errors import StructjaxError
from structjax.rollout import collect, play
from structjax.schema import ActionField, Field, Schema
from structjax.tasks.adapters.gymnax import task_from_gymnax
from structjax.tasks.base import DEFAULT_SEEDS, Task
from structjax.tasks.classic import (
    CARTPOLE_SCHEMA,
    PENDULUM_SCHEMA,
    cartpole,
    pendulum,
)
from structjax.tasks.loading import load_task


class Fixed:
    """A deterministic policy without parameters, for `rollout`."""

    def __init__(self, function, distribution):
        self.function, self.distribution = function, distribution

    def apply(self, variables, obs):
        del variables
        return self.distribution(self.function(obs)), {}


def _make(environment="Pendulum-v1", schema=PENDULUM_SCHEMA, **options):
    return task_from_gymnax(
        environment, schema=schema, description="test", name="mine", **options
    )


def _episode(task, seed, actions):
    """The task's own rewards and observations under given actions."""
    params, starts = task.initial([seed])
    obs, state = task.reset(starts[0], params)
    rows = [obs]
    rewards = []
    step = jax.jit(task.step)
    for action in actions:
        result = step(jax.random.key(0), state, action, params)
        rows.append(result.obs)
        rewards.append(float(result.reward))
        state = result.state
    return np.array(rows), np.array(rewards)


def test_a_pendulum_episode_follows_its_equations():
    actions = np.linspace(-2, 2, 30, dtype=np.float32)[:, None]
    rows, rewards = _episode(pendulum(), 1000, actions)
    # The description's equation, stepped in double precision.
    angle, speed = np.arctan2(rows[0, 1], rows[0, 0]), float(rows[0, 2])
    for torque, reward, after in zip(actions[:, 0], rewards, rows[1:], strict=True):
        wrapped = (angle + np.pi) % (2 * np.pi) - np.pi
        assert reward == pytest.approx(
            -(wrapped**2 + 0.1 * speed**2 + 0.001 * torque**2), abs=1e-3
        )
        speed += 0.05 * (15 * np.sin(angle) + 3 * torque)
        speed = np.clip(speed, -8, 8)
        angle += 0.05 * speed
        np.testing.assert_allclose(
            after, [np.cos(angle), np.sin(angle), speed], atol=1e-3
        )


def test_a_cartpole_episode_is_the_environments():
    environment, params = gymnax.make("CartPole-v1")
    actions = [1, 0, 1, 1, 0, 0, 1, 0]
    rows, rewards = _episode(cartpole(), 7, [jnp.asarray(a) for a in actions])
    obs, state = environment.reset_env(jax.random.key(7), params)
    for i, action in enumerate(actions):
        np.testing.assert_allclose(rows[i], obs, atol=1e-6)
        obs, state, reward, *_ = environment.step_env(
            jax.random.key(0), state, action, params
        )
        assert rewards[i] == reward
    # A push to the right speeds the cart to the right and tips the pole left.
    assert rows[1, 1] > rows[0, 1]
    assert rows[1, 3] < rows[0, 3]


@pytest.mark.parametrize("make", [pendulum, cartpole])
def test_the_mirrored_world_behaves_the_same(make):
    # From mirrored observations, mirrored actions lead to mirrored observations.
    task = make()
    params, starts = task.initial([3])
    _, state = task.reset(starts[0], params)
    inner = state.inner
    fields = ("theta", "theta_dot") if task.name == "pendulum" else (
        "x", "x_dot", "theta", "theta_dot",
    )  # fmt: skip
    mirrored = state._replace(
        inner=inner.replace(**{f: -getattr(inner, f) for f in fields})
    )
    left, right = (0, 1) if task.schema.discrete else (
        jnp.array([-1.5]), jnp.array([1.5]),
    )  # fmt: skip
    key = jax.random.key(0)
    one = task.step(key, state, jnp.asarray(left), params)
    two = task.step(key, mirrored, jnp.asarray(right), params)
    np.testing.assert_allclose(
        task.schema.mirror_observation(np.asarray(one.obs)), two.obs, atol=1e-5
    )


def test_episodes_end_at_the_environments_and_the_given_limit():
    def torque(obs):
        return Normal(0 * obs[:1], jnp.ones(1))

    policy = Fixed(lambda obs: obs, torque)
    for horizon, steps in ((None, 200), (30, 30)):
        task = _make(horizon=horizon)
        run = collect(policy, {}, task, [1, 2], key=jax.random.key(0))
        assert task.horizon == steps
        assert run.valid.sum(0).tolist() == [steps, steps]
        assert run.truncated[-1].tolist() == [True, True]
        assert not run.truncated[:-1].any()
        assert not run.terminated.any()
    always_right = Fixed(lambda obs: 0 * obs[:2], lambda z: Categorical(z + _RIGHT))
    episodes = play(always_right, {}, cartpole(), range(5), key=jax.random.key(0))
    # One-sided pushes tip the pole in about ten steps.
    assert episodes.terminated.all()
    assert (episodes.steps < 15).all()
    np.testing.assert_array_equal(episodes.returns, episodes.steps)


_RIGHT = jnp.array([0.0, 1.0])


def test_seeds_decide_the_start():
    task = pendulum()
    params, starts = task.initial([5, 6, 5])
    first = [np.asarray(task.reset(start, params)[0]) for start in starts]
    np.testing.assert_array_equal(first[0], first[2])
    assert np.abs(first[0] - first[1]).max() > 1e-3
    assert task.seeds == DEFAULT_SEEDS
    assert list(task.seeds["test"]) == list(range(1000, 1010))


def test_info_scalars_are_recorded_on_request():
    task = _make(info={"discount": "0 after a terminal step"})
    params, starts = task.initial([0])
    _, state = task.reset(starts[0], params)
    step = task.step(jax.random.key(0), state, jnp.zeros(1), params)
    assert float(step.info["discount"]) == 1.0


def test_observations_that_are_images_are_flattened():
    environment, params = gymnax.make("Breakout-MinAtar")
    schema = Schema(
        (Field("cells", 400, "", 0.0, 1.0, "10 x 10 cells x 4 channels"),),
        (ActionField("move", "paddle", choices=("stay", "left", "right")),),
    )
    size = int(np.prod(environment.observation_space(params).shape))
    assert size == 400
    choices = tuple(map(str, range(environment.action_space(params).n)))
    action = ActionField("move", "paddle", choices=choices)
    task = _make("Breakout-MinAtar", replace(schema, actions=(action,)), horizon=50)
    obs, _ = task.reset(jax.random.key(0), params)
    assert obs.shape == (400,)
    assert obs.dtype == jnp.float32


TURN = ActionField("turn", "turn", choices=("left", "right"))
WEAK = replace(PENDULUM_SCHEMA.actions[0], low=-1.0, high=1.0)
FAR = Field("cos_angle", None, "", 5.0, 9.0, "out of reach")


@pytest.mark.parametrize(
    ("environment", "schema", "options", "message"),
    [
        ("Pendulum", PENDULUM_SCHEMA, {}, "unknown gymnax environment 'Pendulum'; kn"),
        (
            "Pendulum-v1",
            replace(PENDULUM_SCHEMA, observations=PENDULUM_SCHEMA.observations[:2]),
            {},
            "task 'mine': the schema describes 2 observation values (cos_angle, "
            "sin_angle), the environment gives 3; one Field per value",
        ),
        (
            "Pendulum-v1",
            replace(
                PENDULUM_SCHEMA, observations=(FAR, *PENDULUM_SCHEMA.observations[1:])
            ),
            {},
            "field 'cos_angle' has the range [5, 9], the environment's values lie in "
            "[-1, 1]; check the order",
        ),
        (
            "Pendulum-v1",
            replace(PENDULUM_SCHEMA, actions=(TURN,)),
            {},
            "the environment has 1 continuous actions, the schema describes ['turn']",
        ),
        (
            "Pendulum-v1",
            replace(PENDULUM_SCHEMA, actions=(WEAK,)),
            {},
            "action 'torque' has the range [-1, 1], the environment's is [-2, 2]; set",
        ),
        (
            "CartPole-v1",
            replace(CARTPOLE_SCHEMA, actions=PENDULUM_SCHEMA.actions),
            {},
            "one discrete action with 2 choices, the schema describes ['torque']",
        ),
        (
            "Pendulum-v1",
            PENDULUM_SCHEMA,
            {"horizon": 300},
            "horizon 300 is longer than the environment's limit of 200; pass params",
        ),
        (
            "Pendulum-v1",
            PENDULUM_SCHEMA,
            {"info": {"speed": "?"}},
            "info 'speed' is no scalar of the environment's info; known: discount",
        ),
    ],
)
def test_a_schema_that_differs_is_refused(environment, schema, options, message):
    with pytest.raises(StructjaxError) as caught:
        _make(environment, schema, **options)
    assert message in str(caught.value)


USER_FILE = """
from structjax.tasks.classic import pendulum

def mine():
    return pendulum()

def broken():
    return 1 / 0

def number():
    return 3
"""


def test_a_users_file_gives_a_task(tmp_path):
    path = tmp_path / "tasks.py"
    path.write_text(USER_FILE)
    task = load_task(f"{path}:mine")
    assert isinstance(task, Task)
    assert task.name == "pendulum"


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("other", "names no function of"),
        ("other", "it defines: mine, broken, number"),
        ("broken", "failed: ZeroDivisionError: division by zero"),
        ("number", "returned a int; return a Task"),
    ],
)
def test_a_users_file_that_gives_none_is_explained(tmp_path, function, message):
    path = tmp_path / "tasks.py"
    path.write_text(USER_FILE)
    with pytest.raises(StructjaxError) as caught:
        load_task(f"{path}:{function}")
    assert message in str(caught.value)


def test_a_users_file_that_is_missing_or_broken_is_explained(tmp_path):
    path = tmp_path / "tasks.py"
    with pytest.raises(StructjaxError, match="names no file"):
        load_task(f"{path}:mine")
    path.write_text("import nothing_of_that_name")
    with pytest.raises(StructjaxError, match="cannot be imported: ModuleNotFound"):
        load_task(f"{path}:mine")
    with pytest.raises(StructjaxError, match=r"write path/to/file\.py:function"):
        load_task(str(path))
