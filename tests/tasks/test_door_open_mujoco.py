"""Door Opening's own MJCF: in C MuJoCo, in MJX, and what it took from Meta-World."""

import subprocess
import sys
from types import ModuleType

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from door_expert import expert

from structjax.errors import StructjaxError
from structjax.tasks.door_open import constants as c
from structjax.tasks.door_open.configurations import door_positions
from structjax.tasks.door_open.engine import compile_model, import_mujoco
from structjax.tasks.door_open.mjcf import JOINTED, DoorModel, door_mjcf
from structjax.tasks.door_open.mjx import Mjx, import_mjx
from structjax.tasks.door_open.simulated import SimulatedDoors, simulate
from structjax.tasks.door_open.task import OUTCOMES, door_open

MODELS = {"tilting": DoorModel(), "jointed": JOINTED}
TESTS = range(1000, 1010)
DOORS = door_positions(TESTS)


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_the_expert_opens_the_doors_that_it_opens_in_metaworld(model):
    """9 of the 10 test doors there; 8 are asked for here."""
    result = simulate(expert, TESTS, OUTCOMES, model=model, horizon=300)
    assert result.outcomes["success_ever"].sum() >= 8
    assert np.sort(result.outcomes["min_distance"])[:8].max() < 0.03
    assert result.steps.tolist() == [300] * 10
    assert (result.returns > 0).all()


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_it_consists_of_primitive_shapes(model):
    text = door_mjcf(model)
    assert not any(word in text for word in ("mesh", "texture", "file=", "include"))


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_the_hand_starts_where_metaworlds_does(model):
    """Settling is simulated, except for the last millimetre of the tilting hand."""
    hand = SimulatedDoors(DOORS[:1], model).bodies().hand[0]
    assert hand == pytest.approx(c.HAND_START, abs=2e-4)


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize(
    ("theta", "torque", "expected"),
    [
        (-1.2, 0.0, 0.0),
        (-1.4, 0.0, 63.3),
        (-1.4, -100.0, -377.3),
        (-1.6, 0.0, 324.1),
        (-1.6, -200.0, -117.1),
        (-1.8, 0.0, 816.6),
        (-1.8, -200.0, 379.9),
    ],
)
def test_the_open_door_is_pressed_back_as_in_metaworld(model, theta, torque, expected):
    """Accelerations of the hinge at rest, measured there on MuJoCo 3.3.0, rad/s^2."""
    mujoco, k = import_mujoco(), compile_model(model)
    data = mujoco.MjData(k.model)
    data.mocap_pos[k.door] = (5.0, 5.0, c.DOOR_Z)
    data.qpos[k.hinge] = theta
    data.qfrc_applied[k.model.joint("hinge").dofadr[0]] = torque
    mujoco.mj_forward(k.model, data)
    assert data.qacc[k.hinge] == pytest.approx(expected, abs=18.0)


def test_the_hinge_has_metaworlds_inertia():
    mujoco, k = import_mujoco(), compile_model(DoorModel())
    data = mujoco.MjData(k.model)
    mujoco.mj_forward(k.model, data)
    before = float(data.qacc[k.hinge])
    data.qfrc_applied[k.hinge] = -1.0
    mujoco.mj_forward(k.model, data)
    assert before - data.qacc[k.hinge] == pytest.approx(1.0 / c.HINGE_INERTIA, rel=1e-3)


def test_every_episode_has_its_own_door_and_target():
    doors = SimulatedDoors(DOORS[:2])
    actions = np.array([[1, 0, 0, -1], [0, -1, 0, -1]], np.float32)
    for _ in range(60):
        obs, _, _ = doors.step(actions)
    assert obs[:, 4:6] - DOORS[:2] == pytest.approx(
        np.tile(np.add(c.HINGE, c.HANDLE[:2]), (2, 1)), abs=1e-6
    )
    # 60 steps of 0.01 m from (0, 0.6, 0.2), cut at x = 0.5 and y = 0.4
    target = np.array([[0.5, 0.6, 0.2], [0.0, 0.4, 0.2]])
    assert doors.bodies().target == pytest.approx(target, abs=1e-6)
    assert doors.bodies().hand == pytest.approx(target, abs=0.01)


def test_the_gripper_closes_with_plus_one():
    doors = SimulatedDoors(DOORS[:2])
    for _ in range(40):
        obs, _, _ = doors.step(np.array([[0, 0, 0, 1], [0, 0, 0, -1]], np.float32))
    assert obs[0, 3] == pytest.approx(c.OPENING_CLOSED, abs=0.01)
    assert obs[1, 3] == pytest.approx(c.OPENING_START, abs=0.01)


@pytest.mark.parametrize("value", [np.nan, 1.2, -np.inf])
def test_an_unusable_action_is_refused(value):
    actions = np.zeros((2, 4), np.float32)
    actions[1, 2] = value
    with pytest.raises(StructjaxError, match="the action 'dz' is") as caught:
        SimulatedDoors(DOORS[:2]).step(actions)
    assert caught.value.kind == "action"


@pytest.mark.parametrize(
    "actions", [[["a"] * 4] * 2, [[0.0] * 4, [0.0]], np.zeros(4), None]
)
def test_what_is_no_action_at_all_is_refused(actions):
    with pytest.raises(StructjaxError, match="door_open: the action") as caught:
        SimulatedDoors(DOORS[:2]).step(actions)
    assert caught.value.kind == "action"


@pytest.mark.parametrize("name", ["mujoco", "mujoco.mjx"])
def test_a_missing_mujoco_is_named_with_its_remedy(monkeypatch, name):
    monkeypatch.setitem(sys.modules, name, None)
    if name == "mujoco.mjx":
        monkeypatch.delattr("mujoco.mjx", raising=False)
    with pytest.raises(StructjaxError, match="cannot be imported") as caught:
        import_mujoco() if name == "mujoco" else import_mjx()
    assert "pip install" in caught.value.hint


def test_an_mjx_that_this_jax_cannot_run_is_refused(monkeypatch):
    monkeypatch.setattr("importlib.metadata.version", lambda name: "3.3.0")
    with pytest.raises(StructjaxError, match=r"MJX 3\.3\.0 is too old"):
        import_mjx()


@pytest.mark.parametrize(
    ("version", "fits"), [("3.7.9", False), ("3.8.0rc1", True), ("3.10dev1", True)]
)
def test_a_version_is_compared_by_its_numbers(monkeypatch, version, fits):
    monkeypatch.setattr("importlib.metadata.version", lambda name: version)
    if fits:
        assert import_mjx().step
        return
    with pytest.raises(StructjaxError, match=r"MJX 3\.7\.9 is too old"):
        import_mjx()


def test_a_mujoco_too_old_for_the_model_is_refused(monkeypatch):
    monkeypatch.setattr("mujoco.mj_versionString", lambda: "2.3.7")
    with pytest.raises(StructjaxError, match=r"MuJoCo 2\.3\.7 is too old"):
        import_mujoco()


FRESH = """
import sys
class Telling:
    def find_spec(self, name, *_):
        if name == "mujoco.mjx":
            print("another line")
sys.meta_path.insert(0, Telling())
from structjax.tasks.door_open.mjx import import_mjx
import_mjx()
"""


def test_mjx_does_not_speak_of_a_back_end_that_is_not_used():
    told = subprocess.run(
        [sys.executable, "-c", FRESH], capture_output=True, text=True, check=True
    )
    assert told.stdout == "another line\n"
    assert "warp" not in told.stderr


class Broken(ModuleType):
    """A folder that happens to be called so, or an MJX for another MuJoCo."""

    def __getattr__(self, name):
        raise AttributeError(f"no attribute {name!r}")


@pytest.mark.parametrize("load", [import_mujoco, import_mjx])
def test_a_broken_mujoco_is_refused(monkeypatch, load):
    monkeypatch.setitem(sys.modules, "mujoco", Broken("mujoco"))
    with pytest.raises(StructjaxError, match=r"cannot be imported .no attribute"):
        load()


def test_the_jointed_arm_is_refused_by_mjx():
    with pytest.raises(StructjaxError, match="jointed arm"):
        Mjx(JOINTED)


def test_the_task_offers_both_models_in_c():
    task = door_open()
    returns, steps, outcomes = task.simulators["c"](expert, [1001, 1002])
    assert steps.tolist() == [500, 500]
    assert outcomes["success_ever"].tolist() == [1.0, 1.0]
    assert (returns <= 10 * steps).all()
    assert "c_jointed" in task.simulators


def test_mujocos_rollout_gives_the_same_episodes():
    """The expert's commands, played again by `mujoco.rollout` in one call."""
    mujoco = import_mujoco()
    from mujoco import rollout

    doors = SimulatedDoors(DOORS[1:3])
    k, full = doors.compiled, mujoco.mjtState.mjSTATE_FULLPHYSICS
    start = np.empty((2, mujoco.mj_stateSize(k.model, full)))
    for row, data in zip(start, doors.data, strict=True):
        mujoco.mj_getState(k.model, data, row, full)
    warm = np.array([data.qacc_warmstart for data in doors.data])
    obs, commands = doors.observations(), []
    for _ in range(150):
        obs, _, _ = doors.step(expert(obs))
        now = [np.r_[data.ctrl, data.mocap_pos.ravel()] for data in doors.data]
        commands += [now] * k.substeps
    spec = mujoco.mjtState.mjSTATE_CTRL | mujoco.mjtState.mjSTATE_MOCAP_POS
    states, _ = rollout.rollout(
        k.model, mujoco.MjData(k.model), start, np.swapaxes(commands, 0, 1),
        control_spec=int(spec), initial_warmstart=warm,
    )  # fmt: skip
    found = states[:, -1, 1 : 1 + k.model.nq]  # behind the time
    assert found[:, k.hinge].max() < -0.5
    np.testing.assert_allclose(found, [data.qpos for data in doors.data], atol=1e-6)


@pytest.mark.slow
def test_mjx_moves_as_c_does():
    """The expert's actions on four doors: approach, contact and pull, 100 steps.

    Both compute the same model, one in float32 and one in float64; the door has been
    opened by half a radian or more when they are compared.
    """
    doors = SimulatedDoors(DOORS[1:5])
    dynamics = Mjx()
    step = jax.jit(jax.vmap(dynamics.step))
    state = jax.vmap(dynamics.reset)(jnp.asarray(DOORS[1:5]))
    obs = doors.observations()
    for taken in range(100):
        actions = expert(obs)
        obs, _, _ = doors.step(actions)
        state = step(state, jnp.asarray(actions))
        if taken == 49:
            early = jax.vmap(dynamics.body)(state)
            assert early.hand == pytest.approx(doors.bodies().hand, abs=1e-4)
    body, expected = jax.vmap(dynamics.body)(state), doors.bodies()
    assert expected.theta.max() < -0.5
    assert body.theta == pytest.approx(expected.theta, abs=0.01)
    assert body.hand == pytest.approx(expected.hand, abs=0.005)
    assert body.opening == pytest.approx(expected.opening, abs=0.005)
    assert body.target == pytest.approx(expected.target, abs=1e-5)
