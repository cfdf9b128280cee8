"""The car's motion: tyres, steering joints and the rigid body, for one car.

The equations are what Box2D's 180 velocity and 60 position iterations converge to for
this car: wheels pinned at their own centres to a rigid body, turned by joint motors
that never saturate. Wheels come in the order front left, front right, rear
left, rear right.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from structjax.tasks.car_racing import constants as c


class Grip(NamedTuple):
    """Physics that may vary from episode to episode; the defaults are Gymnasium's.

    Attributes:
      engine_power: W.
      road: largest tyre force on the road, N.
      grass: largest tyre force on grass, N.
      stiffness: tyre force per slip, N s/m.
      brake: wheel spin taken away per step of full brake, rad/s.
    """

    engine_power: float | jax.Array = c.ENGINE_POWER
    road: float | jax.Array = c.ROAD_GRIP
    grass: float | jax.Array = c.GRASS_GRIP
    stiffness: float | jax.Array = c.TYRE_STIFFNESS
    brake: float | jax.Array = c.BRAKE_RATE


class Car(NamedTuple):
    """State of the car, SI units, world frame; headings are 0 along +y, left positive.

    Attributes:
      x, y: `[]` common centre of mass of hull and wheels.
      heading: `[]` of the hull.
      velocity_x, velocity_y: `[]` of the common centre of mass.
      yaw_rate: `[]`.
      joint: `[4]` angle of each wheel against the hull, positive to the left.
      joint_rate: `[4]` rate that the last step's joint motors imposed.
      windup: `[2]` impulse the front motors have built up against their limit.
      spin: `[4]` rolling speed of each wheel, rad/s.
      gas: `[]` engine setting after its ramp.
    """

    x: jax.Array
    y: jax.Array
    heading: jax.Array
    velocity_x: jax.Array
    velocity_y: jax.Array
    yaw_rate: jax.Array
    joint: jax.Array
    joint_rate: jax.Array
    windup: jax.Array
    spin: jax.Array
    gas: jax.Array


class Rotation(NamedTuple):
    """Cosine and sine of an angle."""

    cos: jax.Array
    sin: jax.Array

    def apply(self, x: jax.Array, y: jax.Array) -> tuple[jax.Array, jax.Array]:
        """The turned vector."""
        return self.cos * x - self.sin * y, self.sin * x + self.cos * y


def rotation(angle: jax.Array) -> Rotation:
    """The rotation by `angle`, rad."""
    return Rotation(jnp.cos(angle), jnp.sin(angle))


def solved_turn(yaw_rate: jax.Array) -> jax.Array:
    """How far the solver turns the hull in one step at `yaw_rate`, rad."""
    turn = c.TIME_STEP * yaw_rate
    return turn - c.POSITION_CORRECTION * turn**3


def point_velocity(car: Car, x: jax.Array, y: jax.Array) -> tuple[jax.Array, jax.Array]:
    """World velocity of points of the car, given in the hull's frame from its origin.

    Velocities lag by a step: Box2D does not project them to the pose that its position
    solver has reached, so the lever arm is that of the pose before the last step.
    """
    before = rotation(car.heading - solved_turn(car.yaw_rate))
    arm_x, arm_y = before.apply(x, y - c.CAR.y)
    return car.velocity_x - car.yaw_rate * arm_y, car.velocity_y + car.yaw_rate * arm_x


def hull_origin(car: Car) -> tuple[jax.Array, jax.Array]:
    """Position of the hull's origin, the point that the observation refers to, m."""
    turn = rotation(car.heading)
    return car.x + turn.sin * c.CAR.y, car.y - turn.cos * c.CAR.y


def speed(car: Car) -> jax.Array:
    """Speed of the hull's centre of mass, m/s."""
    x, y = point_velocity(car, jnp.zeros(()), jnp.asarray(c.HULL.y))
    return jnp.sqrt(x * x + y * y)


def wheel_centres(car: Car) -> tuple[jax.Array, jax.Array]:
    """World position `[4]`, `[4]` of the wheels' centres, m."""
    arm_x, arm_y = rotation(car.heading).apply(*_wheel_arms())
    return car.x + arm_x, car.y + arm_y


def _wheel_arms() -> tuple[jax.Array, jax.Array]:
    """Wheel centres `[4]`, `[4]` from the centre of mass, in the hull frame."""
    return jnp.array(c.WHEEL_X), jnp.array(c.WHEEL_Y) - c.CAR.y


def step_car(car: Car, on_road: jax.Array, action: jax.Array, grip: Grip) -> Car:
    """One step of 0.02 s.

    Args:
      car: the state before it.
      on_road: `[4]` bool, wheels that touched the road when the previous step began.
      action: `[3]` steer (+1 full right), gas, brake.
      grip: physics of the episode.
    """
    gas = car.gas + jnp.minimum(jnp.clip(action[1], 0.0, 1.0) - car.gas, c.GAS_RATE)
    joint_rate, windup = joint_motors(car, -action[0])
    spin = _drive_and_brake(car.spin, gas, action[2], grip)
    spin, force_x, force_y = _tyres(car, spin, on_road, grip)
    return _integrate(
        car._replace(gas=gas, spin=spin, windup=windup), joint_rate, force_x, force_y
    )


def joint_motors(car: Car, target: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Rates `[4]` that the joint motors impose, rad/s, and their windup `[2]`.

    The front wheels turn towards `target`, the rear ones to zero. A front motor that
    pushes against its limit stands still and winds up an impulse, which it must unwind
    before the wheel leaves the limit.
    """
    error = jnp.stack([target, target, jnp.zeros(()), jnp.zeros(())]) - car.joint
    wanted = jnp.clip(error / c.TIME_STEP, -c.STEER_RATE, c.STEER_RATE)
    front, angle = wanted[:2], car.joint[:2]
    outward = front * jnp.sign(angle)
    at_limit = jnp.abs(angle) >= c.STEER_LIMIT
    windup = jnp.clip(car.windup + c.WINDUP_RATE * outward, 0.0, c.MAX_MOTOR_IMPULSE)
    windup = jnp.where(at_limit, windup, 0.0)
    front = jnp.where(at_limit & ((outward >= 0.0) | (windup > 0.0)), 0.0, front)
    return jnp.concatenate([front, wanted[2:]]), windup


def _drive_and_brake(
    spin: jax.Array, gas: jax.Array, brake: jax.Array, grip: Grip
) -> jax.Array:
    """Wheel spin `[4]` after engine (rear wheels) and brake."""
    push = c.TIME_STEP * grip.engine_power / c.WHEEL_SPIN_INERTIA * gas
    spin = spin + jnp.array([0.0, 0.0, 1.0, 1.0]) * push / (jnp.abs(spin) + 5.0)
    loss = jnp.minimum(grip.brake * jnp.maximum(brake, 0.0), jnp.abs(spin))
    return jnp.where(brake >= 0.9, 0.0, spin - jnp.sign(spin) * loss)


def _tyres(
    car: Car, spin: jax.Array, on_road: jax.Array, grip: Grip
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Wheel spin `[4]` after the tyres, and their forces in the world frame, N.

    Slip friction: proportional to the slip velocity up to the limit of the ground.
    """
    wheel = rotation(car.heading + car.joint)
    x, y = point_velocity(car, jnp.array(c.WHEEL_X), jnp.array(c.WHEEL_Y))
    sideways = wheel.cos * x + wheel.sin * y
    forwards = wheel.cos * y - wheel.sin * x
    along = grip.stiffness * (spin * c.WHEEL_RADIUS - forwards)
    across = -grip.stiffness * sideways
    size = jnp.sqrt(along * along + across * across)
    limit = jnp.where(on_road, grip.road, grip.grass)
    scale = jnp.where(size > limit, limit / jnp.maximum(size, 1e-6), 1.0)
    along, across = along * scale, across * scale
    reaction = c.TIME_STEP * c.WHEEL_RADIUS / c.WHEEL_SPIN_INERTIA * along
    return spin - reaction, *wheel.apply(across, along)


def _integrate(
    car: Car, joint_rate: jax.Array, force_x: jax.Array, force_y: jax.Array
) -> Car:
    """The rigid body under the tyre forces `[4]`, `[4]`, with prescribed joint rates.

    Angular momentum: the wheels' orbital part is about the pose before the last step
    (see `point_velocity`), and turning wheels push the hull the other way.
    """
    arm_x, arm_y = rotation(car.heading).apply(*_wheel_arms())
    torque = jnp.sum(arm_x * force_y - arm_y * force_x)
    turn = c.TIME_STEP * car.yaw_rate
    momentum = car.yaw_rate * (c.OWN_INERTIA + c.ORBIT_INERTIA * jnp.cos(turn))
    wheels = c.WHEEL.inertia * jnp.sum(car.joint_rate - joint_rate)
    yaw_rate = (momentum + wheels + c.TIME_STEP * torque) / c.CAR.inertia

    velocity_x = car.velocity_x + c.TIME_STEP / c.CAR.mass * jnp.sum(force_x)
    velocity_y = car.velocity_y + c.TIME_STEP / c.CAR.mass * jnp.sum(force_y)
    size = jnp.sqrt(velocity_x**2 + velocity_y**2)
    slow = jnp.minimum(1.0, c.MAX_SPEED / jnp.maximum(size, 1e-6))
    velocity_x, velocity_y = velocity_x * slow, velocity_y * slow
    joint, recoil = _limit(car, joint_rate, yaw_rate)
    return car._replace(
        x=car.x + c.TIME_STEP * velocity_x,
        y=car.y + c.TIME_STEP * velocity_y,
        heading=car.heading + solved_turn(yaw_rate) - recoil,
        velocity_x=velocity_x,
        velocity_y=velocity_y,
        yaw_rate=yaw_rate,
        joint=joint,
        joint_rate=joint_rate,
    )


def _limit(
    car: Car, joint_rate: jax.Array, yaw_rate: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Joint angles `[4]` after the position solver, and the hull's recoil `[]`, rad.

    The solver acts on joints that began the step at their limit, and leaves the angular
    slop.
    """
    lag = c.POSITION_CORRECTION * (c.TIME_STEP * yaw_rate) ** 3
    free = car.joint + c.TIME_STEP * joint_rate + lag
    most = c.STEER_LIMIT + c.ANGULAR_SLOP
    at_limit = jnp.abs(car.joint) >= c.STEER_LIMIT
    held = jnp.where(at_limit, jnp.clip(free, -most, most), free)
    share = c.WHEEL.inertia / (c.WHEEL.inertia + c.HULL.inertia)
    recoil = share * jnp.sum(held - free)
    return jnp.where(at_limit, held, free + recoil), recoil
