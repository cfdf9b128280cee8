"""The semantic observation: road tiles in the car's frame, and the car's own motion."""

import math
from dataclasses import dataclass
from typing import Literal

import jax
import jax.numpy as jnp

from structjax.tasks.car_racing import constants as c
from structjax.tasks.car_racing.contact import Window
from structjax.tasks.car_racing.dynamics import Car, hull_origin, rotation

POSITION_SCALE = 0.03  # per metre
SPEED_SCALE = 0.01  # per m/s


@dataclass(frozen=True)
class ObsConfig:
    """Details of the observation; the defaults are the documented fields.

    Attributes:
      heading_scale: per radian of a tile's heading.
      yaw_rate_scale: per rad/s.
      wheel_scale: per rad/s of wheel spin.
      steer: the field after `speed`: `"joint"` is the angle of the front wheels, as
        measured in the paper's data (arXiv 2610.01652); `"hull"` the car's absolute
        heading, as its prompt says.
      reference: the point that stands for a tile: its front `"node"`, or its `"mid"`.
    """

    heading_scale: float = 1.0 / math.pi
    yaw_rate_scale: float = 0.1
    wheel_scale: float = 1.0 / 200.0
    steer: Literal["joint", "hull"] = "joint"
    reference: Literal["node", "mid"] = "node"


def observe(car: Car, window: Window, config: ObsConfig) -> jax.Array:
    """The flat observation `[4 LOOK_AHEAD + 7]`, in the order of the schema.

    Args:
      car: the state of the car.
      window: the road around it.
      config: static options.
    """
    first = c.BACK + 1
    road = Window(*(column[first:] for column in window))
    x, y = road.x, road.y
    if config.reference == "mid":
        x = 0.5 * (x + window.x[first - 1 : -1])
        y = 0.5 * (y + window.y[first - 1 : -1])
    at_x, at_y = hull_origin(car)
    x, y = x - at_x, y - at_y
    turn = rotation(car.heading)
    right = POSITION_SCALE * (turn.cos * x + turn.sin * y)
    ahead = POSITION_SCALE * (turn.cos * y - turn.sin * x)
    heading = config.heading_scale * wrap(road.beta - car.heading)
    if config.steer == "joint":
        steer = car.joint[0] / math.pi
    else:
        steer = wrap(car.heading) / math.pi
    speed = jnp.sqrt(car.hull_vx**2 + car.hull_vy**2)
    scalars = [SPEED_SCALE * speed, steer, config.yaw_rate_scale * car.yaw_rate]
    return jnp.concatenate(
        [
            *(right, ahead, heading, road.border),
            jnp.stack(scalars),
            config.wheel_scale * car.spin,
        ]
    )


def wrap(angle: jax.Array) -> jax.Array:
    """The angle plus full turns, within [-pi, pi]."""
    return angle - 2 * math.pi * jnp.round(angle / (2 * math.pi))
