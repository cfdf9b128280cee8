"""The faults that were found in the published policies are all reported.

Programs after arXiv 2610.01652: its Car Racing rounds 0 to 3, and a Door program in the
manner of its round 0.
"""

from pathlib import Path

import numpy as np
import pytest

from structjax.demonstration import Demonstration, load_demonstration
from structjax.language.parse import parse
from structjax.language.torch_source.parse import parse_torch
from structjax.linting.lint import lint
from structjax.schema import ActionField, Field, Schema
from structjax.tasks.car_racing.schema import CAR_RACING_SCHEMA as CAR

PROGRAMS = Path(__file__).parents[1] / "fixtures" / "programs"
DOOR = Schema(
    (
        Field("hand", 3, "m", -0.5, 0.5, "position of the hand"),
        Field("handle", 3, "m", -0.5, 0.5, "position of the handle"),
        Field("handle_quat", 4, "", -1.0, 1.0, "orientation of the handle"),
    ),
    tuple(ActionField(name, "") for name in ("dx", "dy", "dz", "grip")),
)


def text_of(name):
    return (PROGRAMS / f"{name}.py").read_text()


def messages(text, code, schema=CAR, **options):
    """Messages of one code."""
    problems = lint(parse(text, schema), schema, **options)
    assert {problem.severity for problem in problems} <= {"warning"}
    return [problem.message for problem in problems if problem.code == code]


@pytest.fixture(scope="module")
def expert():
    return load_demonstration("car_racing/expert_1", CAR)


@pytest.mark.parametrize("name", ["r1", "r2", "r3"])
def test_slip_of_a_wheel_speed_and_a_speed(name):
    (message,) = messages(text_of(name), "UNLIKE_UNITS")
    assert message == (
        "`wheel_speed - speed` subtracts unlike units: `wheel_speed` is in 200 rad/s, "
        "`speed` in 100 m/s"
    )


@pytest.mark.parametrize("name", ["r1", "r2", "r3"])
def test_damping_that_is_even_in_the_yaw_rate(name):
    found = messages(text_of(name), "PARITY")
    scale = "" if name == "r1" else " * damping_scale"
    assert (
        f"term `-yaw_damping * abs(yaw){scale}` of `damping` is even in the "
        "mirrored world; the mean of `steer` needs it odd"
    ) in found


@pytest.mark.parametrize("name", ["r0", "r1", "r2"])
def test_yaw_rate_that_slows_to_one_side(name):
    found = messages(text_of(name), "PARITY")
    assert (
        "term `w_yaw_speed * yaw` of `target_speed` is odd in the mirrored world; "
        "the mean of `gas` and the mean of `brake` need it even"
    ) in found


def test_steering_joint_that_copies_the_steering(expert):
    (message,) = messages(text_of("r0"), "COPYCAT", demonstration=expert)
    assert message.startswith("`obs.steer_angle` (steer_angle) repeats the previous")


def test_weight_of_exactly_zero_in_abs():
    text = text_of("r2").replace(
        'damping_per_speed = weight(0.0, sign="+")', "damping_per_speed = weight(0.0)"
    )
    text = text.replace("damping_per_speed * speed", "abs(damping_per_speed) * speed")
    (message,) = messages(text, "NO_GRADIENT")
    assert message == (
        "no gradient reaches weight `damping_per_speed`: `abs(damping_per_speed)` has "
        "derivative 0 at its value 0"
    )
    # The published spelling starts on the bound of its sign instead.
    (message,) = messages(text_of("r2"), "START_ON_BOUND")
    assert "`damping_per_speed`" in message


def test_dead_latent():
    line = "    speed = obs.speed\n"
    text = text_of("r0").replace(
        line, f"{line}    closest_theta = obs.tiles.heading[0]\n"
    )
    assert messages(text, "UNUSED_LATENT") == ["no action depends on `closest_theta`"]


def test_sign_that_is_normalised_away():
    (message,) = messages(text_of("door_r0"), "NO_GRADIENT", DOOR)
    assert message == (
        "no gradient reaches weight `w_normal_sign`: it only scales what is normalised"
    )


def test_sign_that_is_normalised_away_where_only_a_demonstration_shows_it():
    old = "normalise(w_normal_sign * face[0:2])"
    new = "stack(scaled_x, scaled_y) / sqrt(square(scaled_x) + square(scaled_y))"
    text = text_of("door_r0").replace(
        f"    normal_axis = {old}",
        "    scaled_x = w_normal_sign * face[0]\n"
        "    scaled_y = w_normal_sign * face[1]\n"
        f"    normal_axis = {new}",
    )
    assert messages(text, "NO_GRADIENT", DOOR) == []
    rng = np.random.default_rng(0)
    # Near the handle, where the tangent is used.
    obs = rng.uniform(-0.1, 0.1, (50, 10))
    obs[:, 6:] = rng.normal(size=(50, 4))
    obs[:, 6:] /= np.linalg.norm(obs[:, 6:], axis=1, keepdims=True)
    shown = Demonstration(obs, np.zeros((50, 4), np.float32))
    (message,) = messages(text, "ZERO_GRADIENT", DOOR, demonstration=shown)
    assert message.startswith("weight `w_normal_sign` has no effect along")


def test_proximity_without_gradient_beyond_a_distance():
    (message,) = messages(text_of("door_r0"), "FLAT_FAR", DOOR)
    # 1 / softplus(4) = 1 / 4.01815 = 0.249 of at most sqrt(3) m
    assert message == (
        "`proximity` stays at 0 where `distance` is above 0.249, 86% of its range: "
        "there is no gradient there"
    )


def test_gripper_that_never_opens():
    (message,) = messages(text_of("door_r0"), "UNREACHABLE_ACTION", DOOR)
    assert message == "the mean of `grip` lies in [0, 1]; the range is [-1, 1]"


@pytest.mark.parametrize("name", ["r0", "r1", "r2", "r3"])
def test_noise_that_brakes_where_the_mean_does_not(name):
    (message,) = messages(text_of(name), "ONE_SIDED_NOISE")
    assert message.startswith("the noise of `gas` and `brake` is one-sided")
    bounded = text_of(name).replace("gas=normal", "gas=beta")
    bounded = bounded.replace("brake=normal", "brake=truncated_normal")
    assert messages(bounded, "ONE_SIDED_NOISE") == []


def test_target_speed_clipped_on_most_steps(expert):
    (message,) = messages(text_of("r2"), "SATURATED", demonstration=expert)
    assert message == (
        "`target_speed` is clipped on 62.5% of the demonstration's steps: 62.5% at 1; "
        "no gradient passes there"
    )


def test_the_same_faults_in_pytorch():
    # Round 1 as a module: `speed_scale = nn.Parameter(torch.tensor(0.0))` inside abs.
    text = (PROGRAMS.parent / "torch" / "car_r1.py").read_text()
    problems = lint(parse_torch(text, CAR), CAR)
    found = {(p.code, p.message.split("`")[1]) for p in problems}
    assert found >= {
        ("UNLIKE_UNITS", "mean_wheel - speed"),
        ("PARITY", "-abs(w_damping) * abs(omega)"),
        ("NO_GRADIENT", "speed_scale"),
        ("ONE_SIDED_NOISE", "gas"),
    }
