"""Which road tiles the wheels touch, and which tiles have been visited."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from structjax.tasks.car_racing import constants as c
from structjax.tasks.car_racing.dynamics import Rotation

TILES = c.BACK + 1 + c.AHEAD  # tiles near the car that are tested


class Window(NamedTuple):
    """The road around the car: nodes near - BACK - 1 ... near + LOOK_AHEAD - 1.

    Attributes:
      x, y: `[WINDOW]` nodes, m.
      beta: `[WINDOW]` heading of the road, rad.
      cos, sin: `[WINDOW]` of beta: the road's right-hand direction.
      border: `[WINDOW]` 1 where the tile has a kerb.
      right_x, right_y, left_x, left_y: `[WINDOW]` outward normals of the tile's edges.
    """

    x: jax.Array
    y: jax.Array
    beta: jax.Array
    cos: jax.Array
    sin: jax.Array
    border: jax.Array
    right_x: jax.Array
    right_y: jax.Array
    left_x: jax.Array
    left_y: jax.Array


def nearest_node(
    x: jax.Array, y: jax.Array, at_x: jax.Array, at_y: jax.Array
) -> jax.Array:
    """Index of the node `[NODES]` nearest to a point, `[]` int32.

    The index replaces the last 9 bits of the squared distance, so that one minimum
    finds it (argmin is twice as slow on CPU); nodes within 1e-4 of each other's squared
    distance may change places.
    """
    square = (x - at_x) ** 2 + (y - at_y) ** 2
    bits = jax.lax.bitcast_convert_type(square, jnp.int32)
    key = (bits & ~511) | jnp.arange(c.NODES, dtype=jnp.int32)
    return jnp.min(key) & 511


def window_at(table: jax.Array, track: jax.Array, near: jax.Array) -> Window:
    """The window around node `near` of one track of `[K, rows, COLUMNS]`."""
    rows = jax.lax.dynamic_slice(
        table, (track, near, jnp.zeros((), near.dtype)), (1, c.WINDOW, c.COLUMNS)
    )[0]
    return Window(*(rows[:, i] for i in range(c.COLUMNS)))


def touched_tiles(
    window: Window, wheel_x: jax.Array, wheel_y: jax.Array, wheel: Rotation
) -> jax.Array:
    """`[4, TILES]` bool: whether each wheel overlaps the tiles near - BACK ... + AHEAD.

    Args:
      window: the road around the car.
      wheel_x: `[4]` wheel centres, m.
      wheel_y: `[4]`.
      wheel: `[4]` absolute orientation of the wheels.
    """
    return jnp.stack(
        [
            _touched_by(window, wheel_x[i], wheel_y[i], wheel.cos[i], wheel.sin[i])
            for i in range(4)
        ]
    )


def _touched_by(
    window: Window, at_x: jax.Array, at_y: jax.Array, cos: jax.Array, sin: jax.Array
) -> jax.Array:
    """`[TILES]` bool for one wheel: separating axes of its box and each tile's quad.

    Neighbouring tiles share the line through their common node, so that axis and both
    projections on the wheel's axes are computed once per node.
    """
    half_width, half_length = c.WHEEL_HALF_WIDTH, c.WHEEL_HALF_LENGTH
    road = Window(*(column[: TILES + 1] for column in window))
    x, y = road.x - at_x, road.y - at_y
    along = jnp.abs(road.cos * cos + road.sin * sin)  # |cos| of road against wheel
    across = jnp.abs(road.sin * cos - road.cos * sin)

    ahead = x * road.sin - y * road.cos  # of the node line
    reach = half_length * along + half_width * across + c.OVERLAP_MARGIN
    touches = (ahead[1:] < reach[1:]) & (-ahead[:-1] < reach[:-1])

    for centre, extent, half in (
        (x * cos + y * sin, c.ROAD_HALF_WIDTH * along, half_width),
        (y * cos - x * sin, c.ROAD_HALF_WIDTH * across, half_length),
    ):
        low, high = centre - extent, centre + extent
        touches &= jnp.minimum(low[1:], low[:-1]) < half + c.OVERLAP_MARGIN
        touches &= jnp.maximum(high[1:], high[:-1]) > -half - c.OVERLAP_MARGIN

    for side, normal_x, normal_y in (
        (c.ROAD_HALF_WIDTH, road.right_x[1:], road.right_y[1:]),
        (-c.ROAD_HALF_WIDTH, road.left_x[1:], road.left_y[1:]),
    ):
        corner_x, corner_y = x[1:] + side * road.cos[1:], y[1:] + side * road.sin[1:]
        outside = -(normal_x * corner_x + normal_y * corner_y)
        reach = half_width * jnp.abs(normal_x * cos + normal_y * sin)
        reach += half_length * jnp.abs(normal_y * cos - normal_x * sin)
        touches &= outside < reach + c.OVERLAP_MARGIN
    return touches


def pack(touched: jax.Array) -> jax.Array:
    """`[4, TILES]` bool -> `[]` uint32: bit j is set when any wheel touches tile j."""
    weights = jnp.left_shift(jnp.uint32(1), jnp.arange(TILES, dtype=jnp.uint32))
    hit = jnp.any(touched, axis=0)
    return jnp.sum(jnp.where(hit, weights, jnp.uint32(0)), dtype=jnp.uint32)


def mark_visited(
    visited: jax.Array, near: jax.Array, touched: jax.Array, n: jax.Array
) -> jax.Array:
    """Adds the touched tiles to the visited ones, both as bits.

    Args:
      visited: `[NODES // 32]` uint32.
      near: `[]` node nearest to the car.
      touched: `[]` uint32, bit j is the tile near - BACK + j.
      n: `[]` number of tiles.
    """
    start = jnp.mod(near - c.BACK, n)
    room = jnp.minimum(n - start, 31).astype(jnp.uint32)  # tiles before the start line
    one = jnp.uint32(1)
    before = touched & ((one << room) - one)
    wrapped = touched >> room
    shift = (start & 31).astype(jnp.uint32)
    word = jnp.arange(c.NODES // 32)
    low = jnp.where(word == start >> 5, before << shift, jnp.uint32(0))
    # Two shifts: a shift by 32 is undefined.
    rest = (before >> one) >> (jnp.uint32(31) - shift)
    high = jnp.where(word == (start >> 5) + 1, rest, jnp.uint32(0))
    return visited | low | high | jnp.where(word == 0, wrapped, jnp.uint32(0))


def count_visited(visited: jax.Array) -> jax.Array:
    """Number of visited tiles, `[]` int32."""
    return jnp.sum(jax.lax.population_count(visited).astype(jnp.int32))


def touches_start(near: jax.Array, touched: jax.Array, n: jax.Array) -> jax.Array:
    """Whether a wheel touches tile 0; arguments as in `mark_visited`."""
    offset = jnp.mod(-(near - c.BACK), n)
    inside = offset < TILES
    bit = touched >> jnp.minimum(offset, TILES).astype(jnp.uint32)
    return inside & ((bit & jnp.uint32(1)) == 1)
