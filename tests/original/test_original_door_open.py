"""Meta-World as the judge: protocol, seeds, states and refusals.

Run with `scripts/test-metaworld`; what is not marked runs everywhere.
"""

import json
from importlib import metadata
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from cli.commands import run

from structjax.errors import StructjaxError
from structjax.original.door_open import (
    OriginalDoorOpen,
    evaluate_original,
    import_simulator,
    run_episode,
)
from structjax.tasks.door_open.configurations import TEST_DOORS, door_position
from structjax.tasks.door_open.geometry import goal_distance
from structjax.tasks.door_open.observation import Body, observe, present
from structjax.tasks.door_open.reward import rate
from structjax.tasks.door_open.task import OUTCOMES

metaworld = pytest.mark.metaworld


@pytest.fixture(scope="module")
def env():
    return OriginalDoorOpen()


def wander(obs):
    """Up, towards the door and down again, the gripper closing: actions `[..., 4]`."""
    x = np.clip(10 * (0.1 - obs[..., 0]), -1, 1)
    y = np.full_like(x, 0.4)
    return np.stack([x, y, np.cos(20 * obs[..., 1]), np.ones_like(x)], -1)


@metaworld
def test_the_first_configurations_are_those_of_the_paper(env):
    # Recorded there: handle, goal and gripper of episodes 0 and 1, handle of 2.
    first, second, third = (env.reset(seed).astype(float) for seed in range(1000, 1003))
    close = {"atol": 1e-7, "rtol": 0}
    np.testing.assert_allclose(
        first[4:7], [0.199063873, 0.698079351, 0.150035949], **close
    )
    np.testing.assert_allclose(first[36:], [-0.291657756, 0.455219247, 0.15], **close)
    np.testing.assert_allclose(first[:3], [0.0045842, 0.60138811, 0.19514345], **close)
    assert first[3] == 1.0
    np.testing.assert_allclose(
        first[7:11], [0.69076, -0.15062, 0.69088, 0.15117], atol=5e-6
    )
    np.testing.assert_allclose(
        second[4:7], [0.221916129, 0.68268221, 0.150035949], **close
    )
    np.testing.assert_allclose(second[36:], [-0.2688055, 0.439822106, 0.15], **close)
    np.testing.assert_allclose(third[4:6], [0.25227759, 0.6552421], **close)


@metaworld
def test_the_ten_configurations_are_ten_resets_of_one_environment(env):
    import gymnasium

    name, options = "Meta-World/MT1", {"env_name": "door-open-v3", "seed": 0}
    protocol = gymnasium.make(name, **options, disable_env_checker=True)
    doors = []
    for seed in range(1000, 1010):
        obs, _ = protocol.reset()
        doors.append(tuple(protocol.unwrapped.obj_init_pos[:2]))
        np.testing.assert_array_equal(env.reset(seed), obs.astype(np.float32))
        # Playing in between changes neither the next door nor how it moves.
        for _ in range(15):
            action = wander(obs).astype(np.float32)
            obs, reward, *_ = protocol.step(action)
            step = env.step(action)
            np.testing.assert_array_equal(step.obs, obs.astype(np.float32))
            assert step.reward == reward
    assert tuple(doors) == TEST_DOORS


@metaworld
def test_seeds_differ_in_the_door_and_in_nothing_else(env):
    seeds = (*range(1000, 1010), 2000, 2001, 4000, 10000)
    starts = np.array([env.reset(seed) for seed in seeds], float)
    doors = starts[:, 4:6]
    assert len(np.unique(doors, axis=0)) == len(seeds)
    np.testing.assert_array_equal(env.reset(1003), starts[3].astype(np.float32))
    # The hand, the gripper, the handle's height and its orientation are the same.
    same = np.r_[0:4, 6:18]
    assert np.ptp(starts[:, same], axis=0).max() == 0
    # Now and one step before are the same at a reset.
    np.testing.assert_array_equal(starts[:, :18], starts[:, 18:36])


@metaworld
def test_other_seeds_stand_where_the_jax_task_puts_them(env):
    for seed in (2000, 3007, 10511):
        env.reset(seed)
        np.testing.assert_array_equal(env.state().door, door_position(seed))


@metaworld
def test_the_start_distance_is_the_same_for_every_door(env):
    distances = []
    for seed in (1000, 1007, 2003):
        env.reset(seed)
        handle = env.simulator.data.geom("handle").xpos
        distances.append(np.linalg.norm(handle - env.simulator._target_pos))
    assert np.ptp(distances) < 1e-12
    # The paper's figure, on MuJoCo 3.3.7, which centres the handle's mesh 1 nm off.
    assert distances[0] == pytest.approx(0.5475296784522107, abs=2e-9)


@metaworld
def test_distance_is_a_function_of_the_hinge_angle(env):
    env.reset(1001)
    joint = env.simulator.data.joint("doorjoint")
    found = []
    for theta in np.linspace(-1.9, 0.0, 20):
        joint.qpos[0], joint.qvel[0] = theta, 0.0
        step = env.step(np.zeros(4, np.float32))
        closed_form = float(goal_distance(jnp.float32(step.info["theta"])))
        assert step.info["distance"] == pytest.approx(closed_form, abs=1e-6)
        found.append(step.info["distance"])
    assert 0.0223 <= min(found) < 0.12


def body(state):
    return Body(
        jnp.asarray(state.hand, jnp.float32),
        jnp.float32(state.opening),
        jnp.float32(state.theta),
        jnp.asarray(state.target, jnp.float32),
    )


@metaworld
def test_observation_and_reward_are_those_of_the_jax_task(env):
    from structjax.original.door_demonstrations import scripted_expert

    episode = run_episode(env, 1004, scripted_expert(), 160)
    assert episode.info["success"].max() == 1
    door = jnp.asarray(episode.states[0].door, jnp.float32)
    seen = [present(body(state), door) for state in episode.states]
    for t in range(0, 160, 7):
        obs = observe(seen[t + 1], seen[t], door)
        np.testing.assert_allclose(obs, episode.observations[t + 1], atol=1e-5)
        rating = rate(body(episode.states[t + 1]), door, episode.actions[t])
        np.testing.assert_allclose(rating.reward, episode.rewards[t], atol=1e-5)
        assert rating.success == episode.info["success"][t]


@metaworld
def test_plus_one_closes_the_gripper(env):
    env.reset(1000)
    for _ in range(30):
        closed = env.step(np.array([0, 0, 0, 1.0])).obs[3]
    # Recorded in Meta-World by others: from 1.0 to 0.297 within 30 steps.
    assert closed == pytest.approx(0.297, abs=0.002)
    for _ in range(30):
        opened = env.step(np.array([0, 0, 0, -1.0])).obs[3]
    assert opened > 0.9


@metaworld
def test_lockstep_is_single_episodes_and_calls_the_policy_once_a_step(env):
    shapes = []

    def act(observations):
        shapes.append(observations.shape)
        return wander(observations)

    result = evaluate_original(act, [1002, 2000, 1008], OUTCOMES)
    assert shapes == [(3, 39)] * 500
    assert result.steps.tolist() == [500] * 3
    for i, seed in enumerate((1002, 2000, 1008)):
        episode = run_episode(env, seed, wander)
        assert result.returns[i] == pytest.approx(episode.rewards.sum(), abs=1e-9)
        least = episode.info["distance"].min()
        assert result.outcomes["min_distance"][i] == pytest.approx(least, abs=1e-6)


@metaworld
def test_the_scripted_expert_opens_nine_of_ten_and_leaves_its_argument_alone():
    from structjax.original.door_demonstrations import scripted_expert

    expert = scripted_expert()

    def act(observations):
        before = observations.copy()
        actions = np.stack([expert(obs) for obs in observations])
        np.testing.assert_array_equal(observations, before)
        return actions

    result = evaluate_original(act, range(1000, 1010), OUTCOMES)
    # Known of it: the sixth door, at x = 0.009, is never opened; it pulls the others
    # past the goal, over the least possible distance of 0.0223 m.
    ever = [1.0] * 10
    ever[5] = 0.0
    assert result.outcomes["success_ever"].tolist() == ever
    assert result.outcomes["success_final"].tolist() == [0.0] * 10
    least = np.delete(result.outcomes["min_distance"], 5)
    assert 0.02228 < least.min() <= least.max() < 0.0226


@metaworld
def test_a_program_is_judged_by_the_task(capsys):
    program = Path(__file__).parent.parent / "fixtures" / "programs" / "door_a.py"
    task = ("--task", "door_open", "--simulator", "metaworld", "--seeds", "test")
    code, out, _ = run(capsys, "evaluate", program, *task, "--json")
    found = json.loads(out.splitlines()[-1])["outcomes"]
    # Measured before, outside this project's code, with mean actions: nine doors at the
    # bound, the sixth at 0.498; success ever 9 of 10, at the last step 0 of 10.
    least = found["min_distance"]
    assert code == 0
    assert (least["mean"], least["std_ddof0"]) == pytest.approx(
        (0.070, 0.143), abs=5e-4
    )
    assert least["values"][5] == pytest.approx(0.498, abs=1e-3)
    assert found["success_ever"]["mean"] == 0.9
    assert found["success_final"]["mean"] == 0.0


@metaworld
def test_an_episode_has_500_steps(env):
    env.reset(1000)
    for _ in range(500):
        step = env.step(np.zeros(4))
        assert not step.terminated
    assert step.truncated
    with pytest.raises(StructjaxError, match="step 501 of an episode of 500"):
        env.step(np.zeros(4))


@metaworld
@pytest.mark.parametrize(
    ("action", "message"),
    [
        ([0, np.nan, 0, 0], "'dy' is nan"),
        ([0, 0, 0, 1.5], "'grip' is 1.5"),
        ([0, 0, 0], r"shape \(3,\)"),
    ],
)
def test_actions_that_cannot_be_taken_are_refused(env, action, message):
    env.reset(1000)
    with pytest.raises(StructjaxError, match=message):
        env.step(np.array(action))


def versions(monkeypatch, **found):
    def version(package):
        if package not in found:
            raise metadata.PackageNotFoundError(package)
        return found[package]

    monkeypatch.setattr(metadata, "version", version)


@pytest.mark.parametrize(
    ("found", "problem"),
    [
        ({"mujoco": "4.0.0"}, "metaworld is not installed"),
        (
            {"metaworld": "3.1.1", "mujoco": "4.0.0"},
            "mujoco 3.3.0 is needed, 4.0.0 is installed",
        ),
        (
            {"metaworld": "3.0.0", "mujoco": "3.3.0"},
            "metaworld 3.1.1 is needed, 3.0.0 is installed",
        ),
    ],
)
def test_without_the_pinned_versions_the_remedy_is_named(monkeypatch, found, problem):
    versions(monkeypatch, **found)
    with pytest.raises(StructjaxError) as refused:
        import_simulator()
    assert str(refused.value) == (
        f"the original Door Opening simulator cannot be used ({problem}); in a clone, "
        "with a virtual environment of its own: `pip install -c "
        'constraints-metaworld.txt ".[metaworld]"`'
    )
