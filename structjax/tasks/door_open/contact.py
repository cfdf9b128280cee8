"""Contact of upright fingers with the door: gaps and impulses.

A finger is a capsule along x, seen from above, that stands upright; bar, stem and panel
are capsules in the door frame. Impulses are found row by row (projected Gauss-Seidel),
so that no stiffness limits the step.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

import jax
import jax.numpy as jnp

from structjax.tasks.door_open import constants as c

WALL: Final = (0.389, 0.031, -0.006, 0.15)
"""The cabinet's right wall: centre and half width (with a finger's) along x, its face
along y, all from the hinge, and its top above the door's middle."""


class Shape(NamedTuple):
    """A capsule of the door: a segment from `(x, y)` along one axis of its frame.

    Attributes:
      x, y: centre, in the door frame.
      along_x: 1 when it lies along x, 0 along y.
      half: half length of the segment.
      radius: of the capsule.
      half_height: half of its vertical extent where it is flat.
    """

    x: float | jax.Array
    y: float | jax.Array
    along_x: float | jax.Array
    half: float | jax.Array
    radius: float | jax.Array
    half_height: float | jax.Array


SHAPES: Final = (
    Shape(0.384, c.BAR[1], 1.0, 0.053, 0.021, 0.0),  # bar
    Shape(c.STEM_X, -0.0635, 0.0, 0.0435, c.STEM_RADIUS, 0.0),  # stem
    Shape(
        c.PANEL_X,
        0.0,
        1.0,
        c.PANEL_HALF_LENGTH - c.PANEL_HALF_THICKNESS,
        c.PANEL_HALF_THICKNESS,
        c.PANEL_HALF_HEIGHT,
    ),
)


class Velocity(NamedTuple):
    """Speeds that impulses change, `[]` each: hand, right and left finger, hinge."""

    x: jax.Array
    y: jax.Array
    z: jax.Array
    right: jax.Array
    left: jax.Array
    hinge: jax.Array


class Row(NamedTuple):
    """One possible contact.

    Attributes:
      nx, ny, nz: direction from the door to the finger.
      rx, ry: place on the door from the hinge, in the world's axes.
      gap: distance of the surfaces, negative when they overlap.
      right: 1 for the right finger, 0 for the left.
    """

    nx: jax.Array
    ny: jax.Array
    nz: jax.Array
    rx: jax.Array
    ry: jax.Array
    gap: jax.Array
    right: jax.Array


class Pose(NamedTuple):
    """A finger and the door.

    Attributes:
      x, y, z: centre of the finger; x and y from the hinge.
      right: 1 for the right finger, 0 for the left.
      cosine, sine: of the hinge angle.
    """

    x: jax.Array
    y: jax.Array
    z: jax.Array
    right: jax.Array
    cosine: jax.Array
    sine: jax.Array


def shape_row(pose: Pose, shape: Shape) -> Row:
    """The nearest points of a finger and a capsule of the door."""
    qx = pose.cosine * pose.x + pose.sine * pose.y - shape.x
    qy = pose.cosine * pose.y - pose.sine * pose.x - shape.y
    ex, ey = pose.cosine, -pose.sine  # the finger's axis in the door frame
    lies = shape.along_x
    along, e_along = lies * qx + (1 - lies) * qy, lies * ex + (1 - lies) * ey
    on_shape = jnp.clip(along, -shape.half, shape.half)
    for _ in range(2):  # alternating projections between the two segments
        back = qx * ex + qy * ey - on_shape * e_along
        on_finger = jnp.clip(-back, -c.FINGER_HALF_WIDTH, c.FINGER_HALF_WIDTH)
        on_shape = jnp.clip(along + on_finger * e_along, -shape.half, shape.half)
    dx, dy = qx + on_finger * ex, qy + on_finger * ey
    sx, sy = lies * on_shape, (1 - lies) * on_shape
    dx, dy = dx - sx, dy - sy
    dz = _height(pose.z, shape.half_height)
    distance = jnp.sqrt(dx * dx + dy * dy + dz * dz + 1e-12)
    nx, ny = dx / distance, dy / distance
    px, py = shape.x + sx + shape.radius * nx, shape.y + sy + shape.radius * ny
    return Row(
        nx=pose.cosine * nx - pose.sine * ny,
        ny=pose.sine * nx + pose.cosine * ny,
        nz=dz / distance,
        rx=pose.cosine * px - pose.sine * py,
        ry=pose.sine * px + pose.cosine * py,
        # Where the axes cross there is no direction to part them in.
        gap=jnp.where(distance < 1e-4, 1.0, distance - shape.radius - c.FINGER_RADIUS),
        right=pose.right,
    )


def _height(z: jax.Array, half_height: float | jax.Array) -> jax.Array:
    """Vertical distance of a finger at height `z` to what is at the door's middle."""
    half = c.FINGER_HALF_HEIGHT - c.FINGER_RADIUS
    above = z - half - (c.DOOR_Z + half_height)
    below = (c.DOOR_Z - half_height) - (z + half)
    return jnp.maximum(above, 0.0) - jnp.maximum(below, 0.0)


def wall_row(pose: Pose) -> Row:
    """The front of the cabinet's right wall, which stands still."""
    centre, half_width, face, top = WALL
    zero = jnp.zeros_like(pose.x)
    beside = jnp.abs(pose.x - centre) - half_width
    over = pose.z - c.FINGER_HALF_HEIGHT - (c.DOOR_Z + top)
    gap = face - c.FINGER_RADIUS - pose.y
    absent = (beside > 0.0) | (over > 0.0) | (gap < -0.02)
    gap = jnp.where(absent, 1.0, gap)
    return Row(zero, zero - 1.0, zero, zero, zero, gap, pose.right)


def rows_of(poses: Pose) -> Row:
    """Every finger with every shape: `[2]` poses -> `[8]` rows, finger by finger."""
    shapes = Shape(*(jnp.array(part) for part in zip(*SHAPES, strict=True)))

    def one(pose: Pose) -> Row:
        rows = jax.vmap(shape_row, in_axes=(None, 0))(pose, shapes)
        return jax.tree.map(lambda a, b: jnp.append(a, b), rows, wall_row(pose))

    return jax.tree.map(lambda part: part.reshape(-1), jax.vmap(one)(poses))


def approach(row: Row, v: Velocity) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Velocity of the finger against the door at the contact, x, y, z."""
    own = row.right * v.right - (1 - row.right) * v.left
    return v.x + v.hinge * row.ry, v.y + own - v.hinge * row.rx, v.z


def push(
    row: Row,
    v: Velocity,
    applied: jax.Array,
    *,
    mass: Sequence[float],
    inertia: jax.Array,
    friction: float,
    dt: float,
) -> tuple[Velocity, jax.Array]:
    """One pass over one contact: the new velocities, and the normal impulse so far.

    Surfaces that are apart may close their gap within the step, overlapping ones part
    at up to 0.3 m/s. Friction is bounded by this pass's share of the normal impulse.
    `mass` is the hand's along x, y and z.
    """
    ux, uy, uz = approach(row, v)
    normal = row.nx * ux + row.ny * uy + row.nz * uz
    lever = row.rx * row.ny - row.ry * row.nx
    mx, my, mz = mass
    give = row.nx**2 / mx + row.ny**2 / my + row.nz**2 / mz
    # More than nothing, for the direction may be 0.
    give += row.ny**2 / c.FINGER_MASS + lever**2 / inertia + 1e-4
    part = jnp.where(row.gap > 0.0, row.gap, jnp.maximum(0.2 * row.gap, -0.3 * dt))
    total = jnp.maximum(applied - (normal + part / dt) / give, 0.0)
    impulse = total - applied
    tx, ty, tz = ux - normal * row.nx, uy - normal * row.ny, uz - normal * row.nz
    speed = jnp.sqrt(tx * tx + ty * ty + tz * tz + 1e-8)
    across = (row.rx * ty - row.ry * tx) / speed
    yields = (tx**2 / mx + ty**2 / my + tz**2 / mz) / speed**2 + across**2 / inertia
    drag = jnp.minimum(speed / yields, friction * jnp.abs(impulse)) / speed
    px, py = impulse * row.nx - drag * tx, impulse * row.ny - drag * ty
    pz = impulse * row.nz - drag * tz
    moved = Velocity(
        v.x + px / mx,
        v.y + py / my,
        v.z + pz / mz,
        v.right + row.right * py / c.FINGER_MASS,
        v.left - (1 - row.right) * py / c.FINGER_MASS,
        v.hinge - (row.rx * py - row.ry * px) / inertia,
    )
    return moved, total
