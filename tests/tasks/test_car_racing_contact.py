"""Contacts of wheels and road, against separating axes of all tiles."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from car_simulator import SEEDS

from structjax.tasks.car_racing import constants as c
from structjax.tasks.car_racing import contact
from structjax.tasks.car_racing.dynamics import (
    Car,
    car_at_rest,
    hull_origin,
    rotation,
    wheel_centres,
)
from structjax.tasks.car_racing.tables import separation, track_arrays
from structjax.tasks.car_racing.track import Track, make_track


def test_the_window_and_the_axes_find_every_contact() -> None:
    """Random poses near the road against all separating axes of all tiles nearby."""
    rng = np.random.default_rng(3)
    track = make_track(SEEDS[0])
    arrays = track_arrays(track)
    tiles = tile_polygons(track)

    @jax.jit
    def touched(car: Car) -> tuple[jax.Array, ...]:
        near = contact.nearest_node(arrays.x, arrays.y, *hull_origin(car))
        window = contact.window_at(jnp.asarray(arrays.table)[None], jnp.int32(0), near)
        wheel = rotation(car.heading + car.joint)
        centres = wheel_centres(car)
        return near, contact.touched_tiles(window, *centres, wheel), *centres, *wheel

    seen = 0
    for _ in range(150):
        # Up to 9 m beside the centre line of a random node, in any direction.
        node, side = rng.integers(track.n), rng.uniform(-9, 9)
        x = track.x[node] + side * np.cos(track.beta[node])
        y = track.y[node] + side * np.sin(track.beta[node])
        pose = (jnp.float32(v) for v in (x, y, rng.uniform(-4, 4), 0.0))
        car = car_at_rest(*pose)._replace(
            joint=jnp.asarray(rng.uniform(-0.4, 0.4, 4), jnp.float32)
        )
        near, found, *wheels = (np.asarray(a) for a in touched(car))
        for w in range(4):
            box = wheel_polygon(*(float(a[w]) for a in wheels))
            around = [(int(near) + j) % track.n for j in range(-8, 9)]
            gaps = {i: separation(box, tiles[i]) for i in around}
            expected = {i for i, gap in gaps.items() if gap < c.OVERLAP_MARGIN}
            mine = {
                (int(near) - c.BACK + j) % track.n for j in np.flatnonzero(found[w])
            }
            for i in mine ^ expected:  # float32: only on the very edge
                assert gaps[i] == pytest.approx(c.OVERLAP_MARGIN, abs=1e-4)
            seen += len(expected)
    assert seen > 300


def tile_polygons(track: Track) -> np.ndarray:
    """`[N, 4, 2]` corners of the tiles, as Gymnasium creates them."""
    right = c.ROAD_HALF_WIDTH * np.stack([np.cos(track.beta), np.sin(track.beta)], -1)
    node = np.stack([track.x, track.y], -1)
    front = np.stack([node - right, node + right], axis=1)
    return np.concatenate([front, np.roll(front, 1, axis=0)[:, ::-1]], axis=1)


def wheel_polygon(x: float, y: float, cos: float, sin: float) -> np.ndarray:
    corners = np.array([[-0.28, 0.54], [0.28, 0.54], [0.28, -0.54], [-0.28, -0.54]])
    return corners @ np.array([[cos, sin], [-sin, cos]]) + [x, y]


@pytest.mark.parametrize("n", [230, 256, 319, 416])
def test_visited_tiles_are_a_set(n: int) -> None:
    """Against a Python set, through the start line and across words of 32 bits."""
    mark = jax.jit(contact.mark_visited)
    visited, expected = jnp.zeros(c.NODES // 32, jnp.uint32), set[int]()
    rng = np.random.default_rng(n)
    for near in [*range(0, n, 7), *range(n - 8, n), 0, 1, 2, 3, 30, 31, 32, 33]:
        tiles = rng.random((4, contact.TILES)) < 0.2
        touched = contact.pack(jnp.asarray(tiles))
        visited = mark(visited, jnp.int32(near), touched, jnp.int32(n))
        hit = np.flatnonzero(tiles.any(axis=0))
        expected |= {(near - c.BACK + int(j)) % n for j in hit}
        start = (np.flatnonzero(tiles.any(axis=0)) + near - c.BACK) % n == 0
        assert bool(contact.touches_start(near, touched, n)) == bool(start.any())
    bits = np.unpackbits(np.asarray(visited).view(np.uint8), bitorder="little")
    assert set(np.flatnonzero(bits)) == expected
    assert int(contact.count_visited(visited)) == len(expected)
