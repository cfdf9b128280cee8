"""Door and hand as a few equations: the fast backend.

The hand is a point mass that a damped servo draws to its target, the gripper two damped
slides, the door a damped hinge. Past -1.31 rad the panel presses against the cabinet;
its resistance is a measured curve. The hand never tilts, and only its fingers touch the
door.
"""

from dataclasses import dataclass
from typing import Final, NamedTuple

import jax
import jax.numpy as jnp

from structjax.tasks.door_open import constants as c
from structjax.tasks.door_open import contact
from structjax.tasks.door_open.actions import moved_target
from structjax.tasks.door_open.contact import Pose, Velocity
from structjax.tasks.door_open.observation import Body, opening_of

FINGER_PLACE: Final = 0.0485  # m from the hand along y, when open
FINGER_GAIN: Final = 4.0  # 400 N per unit of command, on the finger's mass
FINGER_DAMPING: Final = 10.0  # 1/s
SERVO: Final = (60.0, 60.0, 44.7)
DAMPING: Final = (188.0, 241.0, 107.0)
"""w and d in 1/s along x, y and z of the hand's acceleration w^2 (target - hand) - d v,
from its free motion in Meta-World; it trails a moving target by d v / w^2."""
REST_OFFSET: Final = (0.0, 0.0, -0.004)  # of the hand from a target that stands still

# Torque (N m per rad past an angle) that holds the door open against the cabinet, from
# slow pushes at 2 to 300 N m; the sum of three straight lines.
PRESS: Final = ((-1.31, 145.0), (-1.4525, 500.0), (-1.5, 350.0))
PRESS_DAMPING: Final = (60.0, 20.0)
"""1/s, of a door that springs back (released at -1.4 to -1.98 rad) and of one that is
pulled on."""
PRESS_INERTIA: Final = 3.0  # a pressed door answers like one so many times heavier


class AnalyticState(NamedTuple):
    """State of one episode.

    Attributes:
      target: `[3]` what the actions move.
      hand, velocity: `[3]` each.
      fingers, finger_speed: `[2]` travel of the right and left finger from open.
      theta, omega: `[]` hinge angle and its rate.
      door_xy: `[2]` where the door stands.
    """

    target: jax.Array
    hand: jax.Array
    velocity: jax.Array
    fingers: jax.Array
    finger_speed: jax.Array
    theta: jax.Array
    omega: jax.Array
    door_xy: jax.Array


@dataclass(frozen=True)
class Analytic:
    """The equations with their constants.

    Attributes:
      pull: N per m of distance between hand and target, from what it takes to hold the
        pressed door; with the servo's w it gives the mass that a contact has to move.
      friction: of fingers on the door.
      passes: over all contacts per physics step.
    """

    pull: float = 8400.0
    friction: float = 0.6
    passes: int = 4

    def reset(self, door_xy: jax.Array) -> AnalyticState:
        """The closed door at `door_xy` `[2]`, the hand at its start."""
        zero = jnp.zeros(())
        return AnalyticState(
            target=jnp.array(c.TARGET_START),
            hand=jnp.array(c.HAND_START),
            velocity=jnp.zeros(3),
            fingers=jnp.zeros(2),
            finger_speed=jnp.zeros(2),
            theta=zero,
            omega=zero,
            door_xy=jnp.asarray(door_xy, jnp.float32),
        )

    def step(self, state: AnalyticState, action: jax.Array) -> AnalyticState:
        """One control step of 12.5 ms under `action` `[4]` in [-1, 1]."""
        target = moved_target(state.target, action)
        # A loop, not five copies: a fifth of the compilation.
        return jax.lax.fori_loop(
            0,
            c.SUBSTEPS,
            lambda _, moved: self._substep(moved, action[3]),
            state._replace(target=target),
        )

    def body(self, state: AnalyticState) -> Body:
        """What the state means for the task."""
        opening = opening_of(*state.fingers)
        return Body(state.hand, opening, state.theta, state.target)

    def _substep(self, state: AnalyticState, grip: jax.Array) -> AnalyticState:
        dt = c.TIME_STEP / c.SUBSTEPS
        press = resistance(state.theta, state.omega)
        v = self._free(state, grip, press, dt)
        v = self._touch(state, v, press.inertia, dt)
        fingers, finger_speed = [], []
        for i, most in enumerate(c.FINGER_TRAVEL):
            reached = state.fingers[i] + dt * v[3 + i]
            fingers.append(jnp.clip(reached, 0.0, most))
            finger_speed.append((fingers[i] - state.fingers[i]) / dt)
        velocity = jnp.stack([v.x, v.y, v.z])
        theta = jnp.clip(state.theta + dt * v.hinge, c.THETA_LOW, 0.0)
        return state._replace(
            hand=state.hand + dt * velocity,
            velocity=velocity,
            fingers=jnp.stack(fingers),
            finger_speed=jnp.stack(finger_speed),
            theta=theta,
            omega=(theta - state.theta) / dt,
        )

    def _free(
        self, state: AnalyticState, grip: jax.Array, press: "Press", dt: float
    ) -> Velocity:
        """Velocities after a physics step without contacts."""
        place = state.target + jnp.array(REST_OFFSET)
        drawn = state.velocity + dt * jnp.array(SERVO) ** 2 * (place - state.hand)
        hand = drawn / (1.0 + dt * jnp.array(DAMPING))  # implicit: the damping is large
        close = FINGER_GAIN * (grip - state.fingers)
        finger = state.finger_speed + dt * (close - FINGER_DAMPING * state.finger_speed)
        turn = press.torque / press.inertia - press.damping * state.omega
        omega = state.omega + dt * turn
        return Velocity(hand[0], hand[1], hand[2], finger[0], finger[1], omega)

    def _touch(
        self, state: AnalyticState, v: Velocity, inertia: jax.Array, dt: float
    ) -> Velocity:
        """Velocities after the impulses of all contacts."""
        rows = contact.rows_of(finger_poses(state))
        mass = [self.pull / w**2 for w in SERVO]

        def one(
            v: Velocity, contact_row: tuple[contact.Row, jax.Array]
        ) -> tuple[Velocity, jax.Array]:
            return contact.push(
                contact_row[0], v, contact_row[1],
                mass=mass, inertia=inertia,
                friction=self.friction, dt=dt,
            )  # fmt: skip

        # Loops, not copies: the compilation is short.
        applied = jnp.zeros_like(rows.gap)
        for _ in range(self.passes):
            v, applied = jax.lax.scan(one, v, (rows, applied))
        return v


class Press(NamedTuple):
    """How the hinge answers: torque towards closed, damping (1/s), inertia."""

    torque: jax.Array
    damping: jax.Array
    inertia: jax.Array


def resistance(theta: jax.Array, omega: jax.Array) -> Press:
    """The hinge with the panel pressing against the cabinet when opened far."""
    torque = jnp.zeros_like(theta)
    for angle, slope in PRESS:
        torque += slope * jnp.maximum(angle - theta, 0.0)
    begun = jnp.clip((PRESS[0][0] - theta) / 0.04, 0.0, 1.0)
    full = jnp.clip((PRESS[0][0] - theta) / (PRESS[0][0] - PRESS[2][0]), 0.0, 1.0)
    inertia = c.HINGE_INERTIA * (1.0 + (PRESS_INERTIA - 1.0) * full)
    extra = jnp.where(omega > 0.0, PRESS_DAMPING[0], PRESS_DAMPING[1]) * begun
    damping = c.HINGE_DAMPING / c.HINGE_INERTIA + extra
    return Press(torque, damping, inertia)


def finger_poses(state: AnalyticState) -> Pose:
    """The two fingers against the door, `[2]` each."""
    x = state.hand[0] - state.door_xy[0] - c.HINGE[0]
    y = state.hand[1] - state.door_xy[1] - c.HINGE[1]
    open_place = state.fingers - FINGER_PLACE  # of the right one; the left mirrors it
    both = jnp.ones(2)
    return Pose(
        x=x * both,
        y=y + jnp.array([1.0, -1.0]) * open_place,
        z=state.hand[2] * both,
        right=jnp.array([1.0, 0.0]),
        cosine=jnp.cos(state.theta) * both,
        sine=jnp.sin(state.theta) * both,
    )
