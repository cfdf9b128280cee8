"""Two gymnax environments as tasks: one with a continuous, one with a discrete action.

They are the worked examples of "your own task": a schema, a description, one call.
"""

import math

from structjax.schema import ActionField, Field, Schema
from structjax.tasks.adapters.gymnax import task_from_gymnax
from structjax.tasks.base import Task

PENDULUM_SCHEMA = Schema(
    observations=(
        Field(
            "cos_angle", None, "", -1.0, 1.0,
            "cosine of the angle from upright: 1 upright, -1 hanging", mirror=1,
        ),
        Field(
            "sin_angle", None, "", -1.0, 1.0,
            "sine of the angle from upright; its sign is the side the tip leans to",
            mirror=-1,
        ),
        Field(
            "angular_velocity", None, "rad/s", -8.0, 8.0,
            "rate of change of the angle, clipped to +-8", mirror=-1,
        ),
    ),
    actions=(
        ActionField(
            "torque", "torque at the pivot; a positive torque raises the angle",
            unit="N m", low=-2.0, high=2.0, mirror=-1,
        ),
    ),
)  # fmt: skip

CARTPOLE_SCHEMA = Schema(
    observations=(
        Field("position", None, "m", -2.4, 2.4, "cart position, + right", mirror=-1),
        Field("velocity", None, "m/s", -4.0, 4.0, "cart velocity, + right", mirror=-1),
        Field(
            "angle", None, "rad", -0.21, 0.21,
            "angle of the pole from upright, + leans right", mirror=-1,
        ),
        Field(
            "angular_velocity", None, "rad/s", -4.0, 4.0,
            "rate of change of the angle, + falls right", mirror=-1,
        ),
    ),
    actions=(
        ActionField(
            "push", "a force of 10 N on the cart for one step",
            unit="10 N", choices=("left", "right"),
        ),
    ),
)  # fmt: skip


def pendulum() -> Task:
    """Swing a pendulum up and hold it: 200 steps, return 0 would be perfect."""
    return task_from_gymnax(
        "Pendulum-v1",
        name="pendulum",
        schema=PENDULUM_SCHEMA,
        description=(
            "Swing a pendulum up from any angle and hold it upright with little "
            "torque. Each of the 200 steps (0.05 s each) costs angle^2 + 0.1 * "
            "angular_velocity^2 + 0.001 * torque^2, angle in (-pi, pi] from upright. "
            "Dynamics: d(angular_velocity)/dt = 15 * sin_angle + 3 * torque, the "
            "velocity limited to +-8. The torque (at most 2) is too weak to lift the "
            "hanging pendulum directly: it has to gain energy by swinging. The episode "
            "starts at a random angle "
            "with an angular velocity within +-1 and never ends early."
        ),
    )


def cartpole() -> Task:
    """Balance a pole on a cart: 500 steps, return 500 is perfect."""
    limit = math.degrees(0.20943951023931953)
    return task_from_gymnax(
        "CartPole-v1",
        name="cartpole",
        schema=CARTPOLE_SCHEMA,
        description=(
            "Balance a pole hinged on a cart by pushing the cart left or right in "
            "every step (0.02 s). The reward is 1 a step. The episode ends when the "
            f"pole leans more than {limit:.0f} degrees (0.209 rad) or the cart leaves "
            "+-2.4 m, and after 500 steps. All four values start within +-0.05. Cart "
            "1 kg, pole 0.1 kg and 1 m long; there is no zero push."
        ),
    )
