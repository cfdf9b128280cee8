"""The analytic dynamics against arithmetic, and the scripted expert in them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from door_expert import expert

from structjax.errors import StructjaxError
from structjax.tasks.base import DEFAULT_SEEDS
from structjax.tasks.door_open import constants as c
from structjax.tasks.door_open import contact
from structjax.tasks.door_open.analytic import Analytic, resistance
from structjax.tasks.door_open.contact import Pose, Velocity
from structjax.tasks.door_open.geometry import START_DISTANCE
from structjax.tasks.door_open.task import door_open
from structjax.tasks.registry import make_task

MODEL = Analytic()


TASK = door_open()
PARAMS, STARTS = TASK.initial(DEFAULT_SEEDS["test"])
RESET = jax.jit(jax.vmap(lambda door: TASK.reset(door, PARAMS)))
STEP = jax.jit(
    jax.vmap(lambda state, action: TASK.step(jax.random.key(0), state, action, PARAMS))
)
MOVE = jax.jit(MODEL.step)


def play(act, steps):
    """Ten episodes: info values `[10, T]`, rewards `[10, T]`, observations.

    `act` maps the step and the observations `[10, 39]` to actions `[10, 4]`.
    """
    obs, state = RESET(STARTS)
    found = []
    for i in range(steps):
        step = STEP(state, act(i, obs))
        obs, state = step.obs, step.state
        found.append((step.info, step.reward, step.obs))
    return jax.tree.map(lambda *parts: np.stack(parts, axis=1), *found)


def constant(*action):
    """The same action in every episode and step."""
    return lambda *_: jnp.tile(jnp.array(action), (10, 1))


@pytest.fixture(scope="module")
def expert_run():
    return play(lambda _, obs: expert(np.asarray(obs)), c.HORIZON)


def test_the_scripted_expert_opens_nine_of_ten(expert_run):
    """As in Meta-World, which it does not open in configuration 5 (door x = 0.0087)."""
    info, _, obs = expert_run
    solved = info["success"].max(1)
    np.testing.assert_array_equal(solved, [1, 1, 1, 1, 1, 0, 1, 1, 1, 1])
    first = info["success"].argmax(1)[solved > 0]
    assert first.min() >= 60  # Meta-World: 74 to 88
    assert first.max() <= 110
    assert info["distance"].min(1)[solved > 0].max() < 0.03
    assert np.isfinite(obs).all()


def test_it_pulls_past_the_goal(expert_run):
    """In Meta-World it ends at -1.85 to -1.96 rad where it opens the door."""
    info, _, _ = expert_run
    assert info["success"][:, -1].sum() == 0
    opened = np.delete(info["theta"][:, -1], 5)
    assert opened.max() < -1.83


def test_rewards_of_the_expert_are_ten_while_solved_and_bounded(expert_run):
    info, reward, _ = expert_run
    assert (reward[info["success"] > 0] == 10.0).all()
    assert reward.min() >= 0.0
    assert reward.max() <= 10.0


def test_nothing_moves_the_door_when_the_hand_stays():
    info, _, obs = play(constant(0.0, 0.0, 0.0, 0.0), 50)
    np.testing.assert_allclose(info["distance"], START_DISTANCE, atol=1e-6)
    assert np.abs(obs[:, -1, 0:3] - np.array(c.HAND_START)).max() < 0.006


@pytest.mark.parametrize(
    ("axis", "direction", "lag"),
    [
        (0, -1.0, 188 * 0.8 / 3600),
        (1, -1.0, 241 * 0.8 / 3600),
        (2, 1.0, 107 * 0.8 / 1998),
    ],
)
def test_the_hand_trails_a_moving_target(axis, direction, lag):
    """At 0.01 m a step it is d v / w^2 behind, v = 0.8 m/s: 0.042, 0.054, 0.043 m."""
    state = MODEL.reset(STARTS[0])
    action = jnp.zeros(4).at[axis].set(direction)
    for _ in range(20):
        state = MOVE(state, action)
    rest = jnp.array([0.0, 0.0, -0.004])
    behind = direction * (state.target + rest - state.hand)[axis]
    # At the end of a step the steps of the target are half a step behind their mean.
    assert float(behind) == pytest.approx(lag - 0.005, abs=0.002)


def test_the_target_stays_in_its_box():
    state = MODEL.reset(STARTS[0])
    for _ in range(60):
        state = MOVE(state, jnp.array([-1.0, -1.0, 1.0, 0.0]))
    np.testing.assert_allclose(state.target, [-0.5, 0.4, 0.5], atol=1e-6)


def test_the_target_runs_ahead_of_a_blocked_hand():
    """Both fingers over the bar, then down onto it for 50 steps."""
    bar = STARTS + (jnp.array(c.HINGE) + jnp.array([0.384, -0.125]))[None]

    @jax.jit
    def act(step, obs):
        up = 8.0 * (0.3 - obs[:, 2:3])
        sideways = jnp.concatenate([8.0 * (bar - obs[:, :2]), up], axis=1)
        down = jnp.broadcast_to(jnp.array([0.0, 0.0, -1.0]), (10, 3))
        move = jnp.where(step < 100, jnp.clip(sideways, -1.0, 1.0), down)
        return jnp.pad(move, ((0, 0), (0, 1)), constant_values=1.0)

    info, _, _ = play(act, 150)
    # bar's top 0.171 and half a finger, 0.045
    np.testing.assert_allclose(info["hand_z"][:, -1], 0.216, atol=0.01)
    assert info["target_lag"][:, -1].min() > 0.12


def test_the_gripper_closes_with_plus_one_in_about_18_steps():
    """Fingers travel 0.04 and 0.03 m of a gap of 0.1: 0.3 of the opening remains."""
    state = MODEL.reset(STARTS[0])
    assert float(MODEL.body(state).opening) == 1.0
    openings = []
    for _ in range(40):
        state = MOVE(state, jnp.array([0.0, 0.0, 0.0, 1.0]))
        openings.append(float(MODEL.body(state).opening))
    assert openings[-1] == pytest.approx(0.3, abs=1e-6)
    assert 12 <= int(np.argmax(np.array(openings) < 0.31)) <= 22
    for _ in range(40):
        state = MOVE(state, jnp.array([0.0, 0.0, 0.0, -1.0]))
    assert float(MODEL.body(state).opening) == 1.0


@pytest.mark.parametrize(
    ("torque", "theta"),
    [(5, -1.334), (20, -1.4525), (50, -1.4988), (100, -1.5528), (200, -1.6492)],
)
def test_the_press_holds_measured_torques_at_measured_angles(torque, theta):
    """Where Meta-World's door comes to rest under a constant torque."""
    found = float(resistance(jnp.asarray(theta), jnp.zeros(())).torque)
    assert found == pytest.approx(torque, rel=0.08, abs=2.0)


def test_a_released_door_springs_back_and_a_free_one_slows_down():
    state = MODEL.reset(STARTS[0])
    released = state._replace(theta=jnp.asarray(-1.8))
    free = state._replace(theta=jnp.asarray(-0.2), omega=jnp.asarray(-1.0))
    for _ in range(40):
        released = MOVE(released, jnp.zeros(4))
        free = MOVE(free, jnp.zeros(4))
    assert -1.35 < float(released.theta) < -1.2
    # omega / (damping / inertia) = 0.151 / 2 is the way that remains
    assert float(free.theta) == pytest.approx(-0.2 - 0.0754, abs=0.003)


class TestContact:
    """One finger, 0.0045 m thick, and the shapes of a closed door."""

    def pose(self, x, y, z=c.DOOR_Z):
        one, zero = jnp.ones(()), jnp.zeros(())
        return Pose(*map(jnp.asarray, (x, y, z)), one, one, zero)

    def test_the_gap_to_the_bar_from_behind(self):
        """0.05 m behind the axis: less the radii 0.021 and 0.0045."""
        row = contact.shape_row(self.pose(0.384, -0.07), contact.SHAPES[0])
        assert float(row.gap) == pytest.approx(0.05 - 0.021 - 0.0045, abs=1e-6)
        np.testing.assert_allclose(row[:3], [0.0, 1.0, 0.0], atol=1e-6)
        assert float(row.ry) == pytest.approx(-0.12 + 0.021, abs=1e-6)

    def test_the_gap_to_the_bar_from_above(self):
        """0.1 m up: less half a finger 0.045 and the bar's 0.021."""
        row = contact.shape_row(self.pose(0.384, -0.12, 0.25), contact.SHAPES[0])
        assert float(row.gap) == pytest.approx(0.1 - 0.045 - 0.021, abs=1e-6)
        np.testing.assert_allclose(row[:3], [0.0, 0.0, 1.0], atol=1e-5)

    def test_the_gap_to_the_stem_from_the_right(self):
        """0.04 m to its right: less its 0.013, and 0.015 of the finger's width."""
        row = contact.shape_row(self.pose(0.365, -0.07), contact.SHAPES[1])
        assert float(row.gap) == pytest.approx(0.04 - 0.013 - 0.015, abs=1e-6)
        np.testing.assert_allclose(row[:3], [1.0, 0.0, 0.0], atol=1e-6)

    def test_crossed_axes_give_no_impulse(self):
        """Where there is no direction, nothing may become infinite."""
        row = contact.shape_row(self.pose(0.384, -0.12), contact.SHAPES[0])
        zero = jnp.zeros(())
        v = Velocity(zero, zero - 1.0, zero, zero, zero, zero)
        moved, impulse = contact.push(
            row, v, zero, mass=(3.0, 3.0, 3.0), inertia=jnp.asarray(c.HINGE_INERTIA),
            friction=1.0, dt=0.0025,
        )  # fmt: skip
        np.testing.assert_allclose(moved, v, atol=1e-6)
        assert np.isfinite(float(impulse))

    def test_an_impulse_stops_the_approach_and_turns_the_door(self):
        """Hand of 3 kg at 1 m/s onto the bar from behind: momentum is conserved."""
        row = contact.shape_row(self.pose(0.384, -0.0946), contact.SHAPES[0])
        zero = jnp.zeros(())
        v = Velocity(zero, zero - 1.0, zero, zero, zero, zero)
        moved, impulse = contact.push(
            row, v, zero, mass=(3.0, 3.0, 3.0), inertia=jnp.asarray(c.HINGE_INERTIA),
            friction=0.0, dt=0.0025,
        )  # fmt: skip
        closing = contact.approach(row, moved)[1]
        # what remains closes at most the gap, or opens the overlap slowly
        assert abs(float(closing)) <= 0.31
        assert float(impulse) == pytest.approx(3.0 * (float(moved.y) + 1.0), rel=1e-4)
        turned = -float(row.rx) * float(impulse) / c.HINGE_INERTIA
        assert float(moved.hinge) == pytest.approx(turned, rel=1e-4)


def test_actions_beyond_the_range_are_clipped():
    wild = play(constant(9.0, -9.0, 2.0, 3.0), 5)
    tame = play(constant(1.0, -1.0, 1.0, 1.0), 5)
    np.testing.assert_array_equal(wild[2], tame[2])


def test_episodes_last_exactly_the_horizon():
    task = door_open(horizon=np.int64(3))
    params, starts = task.initial([1000])
    _, state = task.reset(starts[0], params)
    ended = []
    move = jax.jit(lambda s: task.step(jax.random.key(0), s, jnp.zeros(4), params))
    for _ in range(3):
        step = move(state)
        state = step.state
        ended.append((bool(step.terminated), bool(step.truncated)))
    assert ended == [(False, False), (False, False), (False, True)]


def test_the_previous_part_is_the_last_present_one():
    _, _, obs = play(constant(1.0, 1.0, 1.0, 1.0), 4)
    np.testing.assert_array_equal(obs[0, 1:, 18:36], obs[0, :-1, 0:18])


def test_resets_by_key_draw_different_doors():
    environment = TASK.environment
    params = environment.default_params
    keys = jax.random.split(jax.random.key(1), 20)
    obs, _ = jax.vmap(environment.reset_env, in_axes=(0, None))(keys, params)
    assert len(set(np.asarray(obs[:, 4]).tolist())) > 15


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"backend": "magic"}, "backend 'magic'"),
        ({"horizon": 501}, "horizon 501"),
        ({"horizon": 0}, "horizon 0"),
        ({"horizon": "500"}, "horizon '500'"),
        ({"horizon": True}, "horizon True"),
        ({"backend": np.array(["mjx", "analytic"])}, "backend array"),
    ],
)
def test_options_that_cannot_be_used(options, problem):
    with pytest.raises(StructjaxError, match=problem):
        make_task("door_open", **options)
