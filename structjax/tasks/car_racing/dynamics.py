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
      hull_vx, hull_vy: `[]` velocity of the hull's centre of mass.
      wheel_vx, wheel_vy: `[4]` velocity of the wheels' centres. They are kept because
        Box2D solves velocities at the pose before a step and does not project them to
        the pose after it; the lag matters (336 points of return without it).
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
    hull_vx: jax.Array
    hull_vy: jax.Array
    wheel_vx: jax.Array
    wheel_vy: jax.Array
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


def car_at_rest(
    x: jax.Array, y: jax.Array, heading: jax.Array, joint: jax.Array
) -> Car:
    """A car that stands still; `joint` is the angle of all four wheels."""
    zero, four = jnp.zeros(()), jnp.zeros(4)
    return Car(
        *(x, y, heading, zero, zero, four, four, zero),
        joint=jnp.broadcast_to(joint, (4,)),
        joint_rate=four,
        windup=jnp.zeros(2),
        spin=four,
        gas=zero,
    )


def hull_origin(car: Car) -> tuple[jax.Array, jax.Array]:
    """Position of the hull's origin, the point that the observation refers to, m."""
    turn = rotation(car.heading)
    return car.x + turn.sin * c.CAR.y, car.y - turn.cos * c.CAR.y


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
    sideways = wheel.cos * car.wheel_vx + wheel.sin * car.wheel_vy
    forwards = wheel.cos * car.wheel_vy - wheel.sin * car.wheel_vx
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

    Linear and angular momentum decide: of the velocities that hull and wheels have, at
    the pose that they have now; turning wheels push the hull the other way.
    """
    turn = rotation(car.heading)
    arm_x, arm_y = turn.apply(*_wheel_arms())
    hull_arm = c.HULL.y - c.CAR.y
    mean_x, mean_y = _common_velocity(car)
    loose_x, loose_y = car.wheel_vx - car.hull_vx, car.wheel_vy - car.hull_vy
    orbit = c.WHEEL.mass * jnp.sum(arm_x * loose_y - arm_y * loose_x)
    wheels = c.WHEEL.inertia * jnp.sum(car.joint_rate - joint_rate)
    torque = jnp.sum(arm_x * force_y - arm_y * force_x)
    momentum = c.OWN_INERTIA * car.yaw_rate + orbit + wheels + c.TIME_STEP * torque
    yaw_rate = momentum / c.CAR.inertia
    mean_x = mean_x + c.TIME_STEP / c.CAR.mass * jnp.sum(force_x)
    mean_y = mean_y + c.TIME_STEP / c.CAR.mass * jnp.sum(force_y)

    hull_x, hull_y = -yaw_rate * turn.cos * hull_arm, -yaw_rate * turn.sin * hull_arm
    wheel_x, wheel_y = -yaw_rate * arm_y, yaw_rate * arm_x
    moved = car._replace(yaw_rate=yaw_rate, joint_rate=joint_rate)
    moved = _with_speed_limit(
        moved, mean_x + hull_x, mean_y + hull_y, mean_x + wheel_x, mean_y + wheel_y
    )
    # What the speed limit adds to the velocity of the wheels against the hull.
    torn_x = moved.wheel_vx - moved.hull_vx - (wheel_x - hull_x)
    torn_y = moved.wheel_vy - moved.hull_vy - (wheel_y - hull_y)
    angle = c.TIME_STEP * yaw_rate
    moment = arm_x * torn_y - arm_y * torn_x - angle * (arm_x * torn_x + arm_y * torn_y)
    torn = c.TIME_STEP * jnp.sum(jnp.array(c.HULL_SHARE) * moment)
    lag = c.POSITION_CORRECTION * angle**3 - torn

    joint, recoil = _limit(car.joint, car.joint + c.TIME_STEP * joint_rate + lag)
    step_x, step_y = _common_velocity(moved)
    return moved._replace(
        x=car.x + c.TIME_STEP * step_x,
        y=car.y + c.TIME_STEP * step_y,
        heading=car.heading + angle - lag - recoil,
        joint=joint,
    )


def _common_velocity(car: Car) -> tuple[jax.Array, jax.Array]:
    """Velocity of the common centre of mass."""
    share = c.WHEEL.mass / c.CAR.mass
    loose_x, loose_y = car.wheel_vx - car.hull_vx, car.wheel_vy - car.hull_vy
    return car.hull_vx + share * jnp.sum(loose_x), car.hull_vy + share * jnp.sum(
        loose_y
    )


def _with_speed_limit(
    car: Car,
    hull_vx: jax.Array,
    hull_vy: jax.Array,
    wheel_vx: jax.Array,
    wheel_vy: jax.Array,
) -> Car:
    """Sets the velocities; Box2D limits the speed of each body by itself."""
    hull, wheel = _slow_down(hull_vx, hull_vy), _slow_down(wheel_vx, wheel_vy)
    return car._replace(
        hull_vx=hull_vx * hull,
        hull_vy=hull_vy * hull,
        wheel_vx=wheel_vx * wheel,
        wheel_vy=wheel_vy * wheel,
    )


def _slow_down(x: jax.Array, y: jax.Array) -> jax.Array:
    """Factor that brings a velocity within the speed limit."""
    size = jnp.sqrt(x * x + y * y)
    return jnp.where(size > c.MAX_SPEED, c.MAX_SPEED / jnp.maximum(size, 1.0), 1.0)


def _limit(before: jax.Array, after: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Joint angles `[4]` after the position solver, and the hull's recoil `[]`, rad.

    The solver acts on joints that began the step at their limit, and leaves the angular
    slop.
    """
    most = c.STEER_LIMIT + c.ANGULAR_SLOP
    at_limit = jnp.abs(before) >= c.STEER_LIMIT
    held = jnp.where(at_limit, jnp.clip(after, -most, most), after)
    share = c.WHEEL.inertia / (c.WHEEL.inertia + c.HULL.inertia)
    recoil = share * jnp.sum(held - after)
    return jnp.where(at_limit, held, after + recoil), recoil
