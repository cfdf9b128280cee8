"""The whole physical state of the original Car Racing simulator, for comparisons."""

from typing import NamedTuple

import numpy as np

from structjax.original.car_racing import OriginalCarRacing


class PhysicsState(NamedTuple):
    """The simulator's state, SI units, wheels in the order FL, FR, RL, RR.

    Attributes:
      position: `[2]` hull origin.
      hull_com: `[2]` centre of mass of the hull alone.
      com: `[2]` centre of mass of hull and wheels.
      angle: hull heading, rad, 0 along +y, positive to the left.
      hull_velocity: `[2]` of the hull's centre of mass.
      com_velocity: `[2]` of the common centre of mass.
      yaw_rate: rad/s.
      wheel_position: `[4, 2]`.
      wheel_velocity: `[4, 2]`.
      wheel_angle: `[4]` rad, absolute.
      wheel_yaw_rate: `[4]` rad/s.
      joint_angle: `[4]` wheel against hull, rad.
      joint_motor_speed: `[4]` what the last step asked for, rad/s.
      omega: `[4]` wheel spin, rad/s.
      gas: `[4]` engine setting after its ramp.
      on_road: `[4]` bool, whether the wheel touches a tile.
      visited: `[N]` bool, tiles visited.
    """

    position: np.ndarray
    hull_com: np.ndarray
    com: np.ndarray
    angle: float
    hull_velocity: np.ndarray
    com_velocity: np.ndarray
    yaw_rate: float
    wheel_position: np.ndarray
    wheel_velocity: np.ndarray
    wheel_angle: np.ndarray
    wheel_yaw_rate: np.ndarray
    joint_angle: np.ndarray
    joint_motor_speed: np.ndarray
    omega: np.ndarray
    gas: np.ndarray
    on_road: np.ndarray
    visited: np.ndarray


def physics_state(env: OriginalCarRacing) -> PhysicsState:
    """The whole physical state, for comparisons with other simulators."""
    hull, wheels = env.simulator.car.hull, env.simulator.car.wheels
    bodies = [hull, *wheels]
    mass = np.array([body.mass for body in bodies])[:, None] / sum(
        body.mass for body in bodies
    )
    centres = np.array([tuple(body.worldCenter) for body in bodies])
    velocities = np.array([tuple(body.linearVelocity) for body in bodies])
    return PhysicsState(
        position=np.array(hull.position),
        hull_com=centres[0],
        com=(mass * centres).sum(0),
        angle=hull.angle,
        hull_velocity=velocities[0],
        com_velocity=(mass * velocities).sum(0),
        yaw_rate=hull.angularVelocity,
        wheel_position=np.array([tuple(wheel.position) for wheel in wheels]),
        wheel_velocity=velocities[1:],
        wheel_angle=np.array([wheel.angle for wheel in wheels]),
        wheel_yaw_rate=np.array([wheel.angularVelocity for wheel in wheels]),
        joint_angle=np.array([wheel.joint.angle for wheel in wheels]),
        joint_motor_speed=np.array([wheel.joint.motorSpeed for wheel in wheels]),
        omega=np.array([wheel.omega for wheel in wheels], np.float64),
        gas=np.array([wheel.gas for wheel in wheels], np.float64),
        on_road=np.array([len(wheel.tiles) > 0 for wheel in wheels]),
        visited=np.array([tile.road_visited for tile in env.simulator.road]),
    )
