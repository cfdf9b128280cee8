"""Per-track arrays that the JAX environment needs, computed once on the host."""

import math
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from structjax.tasks.car_racing import constants as c
from structjax.tasks.car_racing.track import Track

Array: TypeAlias = Any  # NumPy on the host, JAX inside the environment


class TrackArrays(NamedTuple):
    """One track, padded to `constants.NODES` nodes.

    Attributes:
      x, y: `[NODES]` node positions in m, float32; the padding is far away.
      table: `[NODES + WINDOW, COLUMNS]` node table with wrap-around rows: row j is the
        node (j - BACK - 1) mod n; columns x, y, beta, cos beta, sin beta, border, and
        the outward unit normals (x, y) of the right and left edge of tile (node) j.
      n: `[]` number of tiles, int32.
      initial: `[3]` x, y (m) of the car's centre of mass and its heading (rad), after
        the hidden step of Gymnasium's reset.
      joint: `[]` joint angle of the four wheels after that step, rad.
      initial_visited: `[NODES // 32]` uint32, bit b of word w is tile 32 w + b.
      initial_road: `[4]` bool, wheels that touch the road at reset.
    """

    x: Array
    y: Array
    table: Array
    n: Array
    initial: Array
    joint: Array
    initial_visited: Array
    initial_road: Array


def track_arrays(track: Track) -> TrackArrays:
    """Everything the environment needs to know of a track."""
    if track.n > c.NODES:
        raise ValueError(f"a track of {track.n} tiles; at most {c.NODES} are supported")
    padding = np.full(c.NODES - track.n, c.FAR_AWAY)
    pose = reset_pose(track)
    touches = reset_contacts(track)
    bits = np.zeros(c.NODES, bool)
    bits[: track.n] = touches.any(axis=0)
    return TrackArrays(
        x=np.concatenate([track.x, padding]).astype(np.float32),
        y=np.concatenate([track.y, padding]).astype(np.float32),
        table=node_table(track),
        n=np.array(track.n, np.int32),
        initial=np.array([pose.x, pose.y, pose.heading], np.float32),
        joint=np.array(pose.joint, np.float32),
        initial_visited=np.packbits(bits, bitorder="little").view("<u4").astype("u4"),
        initial_road=touches.any(axis=1),
    )


def node_table(track: Track) -> np.ndarray:
    """`[NODES + WINDOW, COLUMNS]`, see `TrackArrays.table`."""
    right = np.stack([np.cos(track.beta), np.sin(track.beta)], -1)
    node = np.stack([track.x, track.y], -1)
    edges = []
    for side in (1.0, -1.0):
        corner = node + side * c.ROAD_HALF_WIDTH * right
        along = corner - np.roll(corner, 1, axis=0)
        normal = np.stack([along[:, 1], -along[:, 0]], -1) * side
        edges.append(normal / np.linalg.norm(normal, axis=-1, keepdims=True))
    columns = [node, track.beta[:, None], right, track.border[:, None], *edges]
    rows = (np.arange(c.NODES + c.WINDOW) - c.BACK - 1) % track.n
    return np.concatenate(columns, -1)[rows].astype(np.float32)


class ResetPose(NamedTuple):
    """Pose of the car after the hidden step: centre of mass, heading, joint angle."""

    x: float
    y: float
    heading: float
    joint: float


def reset_pose(track: Track) -> ResetPose:
    """Where Gymnasium's reset leaves the car.

    Its wheels are created at offsets that are not turned with the hull, so the joints'
    position solver pulls hull and wheels together in the hidden step: Gauss-Seidel over
    the four joints until the errors are within the linear slop, at most 60 times.
    """
    start = np.array([track.x[0], track.y[0]])
    heading = float(track.beta[0])
    offsets = np.stack([c.WHEEL_X, c.WHEEL_Y], -1)
    centre = np.array([c.HULL.x, c.HULL.y])
    hull = start + _turn(heading) @ centre
    wheels = start + offsets
    total = c.HULL.mass * hull + c.WHEEL.mass * wheels.sum(axis=0)
    turned = heading
    for _ in range(c.POSITION_ITERATIONS):
        worst = 0.0
        for i in (3, 2, 1, 0):  # Box2D visits the last joint first
            arm = _turn(turned) @ (offsets[i] - centre)
            gap = wheels[i] - hull - arm
            worst = max(worst, float(np.hypot(*gap)))
            push = np.linalg.solve(_compliance(arm), -gap)
            hull = hull - push / c.HULL.mass
            turned -= (arm[0] * push[1] - arm[1] * push[0]) / c.HULL.inertia
            wheels[i] += push / c.WHEEL.mass
        if worst <= c.LINEAR_SLOP:
            break
    x, y = total / c.CAR.mass  # internal forces leave the centre of mass where it is
    return ResetPose(x, y, turned, heading - turned)


def _turn(angle: float) -> np.ndarray:
    cos, sin = math.cos(angle), math.sin(angle)
    return np.array([[cos, -sin], [sin, cos]])


def _compliance(arm: np.ndarray) -> np.ndarray:
    """`[2, 2]` motion of a joint's gap per unit of impulse at `arm` of the hull."""
    shared = (1 / c.HULL.mass + 1 / c.WHEEL.mass) * np.eye(2)
    across = np.array([-arm[1], arm[0]])
    return shared + np.outer(across, across) / c.HULL.inertia


def reset_contacts(track: Track) -> np.ndarray:
    """`[4, N]` bool: which tiles each wheel touches in the hidden step.

    Separating axes of two convex quads; the wheels lie at their offsets as created.
    """
    right = np.stack([np.cos(track.beta), np.sin(track.beta)], -1)
    node = np.stack([track.x, track.y], -1)
    sides = [node + s * c.ROAD_HALF_WIDTH * right for s in (-1.0, 1.0)]
    tiles = np.stack(
        [*sides, np.roll(sides[1], 1, axis=0), np.roll(sides[0], 1, axis=0)], axis=1
    )
    box = np.array([[-1, 1], [1, 1], [1, -1], [-1, -1]], float)
    box = box * [c.WHEEL_HALF_WIDTH, c.WHEEL_HALF_LENGTH] @ _turn(track.beta[0]).T
    offsets = np.stack([c.WHEEL_X, c.WHEEL_Y], -1)
    wheels = node[0] + offsets[:, None] + box
    touches = np.zeros((4, track.n), bool)
    for i in range(-c.BACK, c.AHEAD + 1):
        for w in range(4):
            touches[w, i] = separation(wheels[w], tiles[i]) < c.OVERLAP_MARGIN
    return touches


def separation(first: np.ndarray, second: np.ndarray) -> float:
    """Largest separation of two convex polygons `[V, 2]` along their edges' normals."""
    worst = -math.inf
    for polygon in (first, second):
        edges = np.roll(polygon, -1, axis=0) - polygon
        for normal in np.stack([edges[:, 1], -edges[:, 0]], -1):
            normal = normal / np.linalg.norm(normal)
            a, b = first @ normal, second @ normal
            worst = max(worst, a.min() - b.max(), b.min() - a.max())
    return float(worst)
