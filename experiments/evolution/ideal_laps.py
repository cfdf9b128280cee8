"""What a lap of Car Racing would return if the car were a point that can do everything.

    python experiments/evolution/ideal_laps.py [--seeds 1000:1010] [--half-width 6]

The point knows the whole track, turns, brakes and accelerates without delay, up to the
tyres' grip (friction circle), the traction of the rear wheels and the engine's power,
and starts at rest. Its line (offsets from the centre line, cubic splines with a knot at
every second tile) is optimised by Adam on the time of a forward and backward pass. An
estimate, not a bound: a better line may exist. The real car has delays, inertia and a
short view.
"""

import argparse

import jax
import jax.numpy as jnp
import numpy as np
import optax
from scipy.interpolate import BSpline

from structjax.tasks.car_racing import constants as c
from structjax.tasks.car_racing.track import make_track

GRIP = 4 * c.ROAD_GRIP / c.CAR.mass
"""Largest acceleration of all four tyres, m/s^2."""
ROLLING = c.WHEEL_SPIN_INERTIA / c.WHEEL_RADIUS**2
"""A wheel that has to be spun up weighs so much more, kg."""
TRACTION = 2 * c.ROAD_GRIP / (c.CAR.mass + 2 * ROLLING)
"""Of the rear tyres, which also spin up the front wheels, m/s^2."""
POWER = 2 * c.ENGINE_POWER / (c.CAR.mass + 4 * ROLLING)
"""Acceleration times speed, m^2/s^3."""
REWARD_PER_STEP = 0.1
UPDATES = 6000


def road(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Tiles of a track and the unit vectors across it, `[N, 2]` each."""
    track = make_track(seed)
    tiles = np.stack([track.x, track.y], 1)
    along = np.roll(tiles, -1, 0) - np.roll(tiles, 1, 0)
    across = np.stack([-along[:, 1], along[:, 0]], 1)
    return tiles, across / np.linalg.norm(across, axis=1, keepdims=True)


def padded(rows: np.ndarray, length: int) -> np.ndarray:
    """The rows, going straight on to the given number."""
    more = np.arange(1, length - len(rows) + 1)[:, None]
    return np.concatenate([rows, rows[-1] + more * (rows[-1] - rows[-2])])


def seconds(offset: jax.Array, tiles: jax.Array, across: jax.Array) -> jax.Array:
    """Time from tile to tile, `[N - 1]`, along the line with these offsets `[N]`."""
    leg = jnp.diff(tiles + offset[:, None] * across, axis=0)
    length = jnp.sqrt(jnp.sum(leg**2, 1) + 1e-9)
    a, b = leg[:-1], leg[1:]
    turn = jnp.arctan2(a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0], jnp.sum(a * b, 1))
    bend = jnp.abs(turn) / (0.5 * (length[:-1] + length[1:]))
    bend = jnp.concatenate([bend[:1], bend, bend[-1:]])
    most = jnp.minimum(GRIP / (bend + 1e-4), c.MAX_SPEED**2)

    def left(squared: jax.Array, bend: jax.Array) -> jax.Array:
        """Share of the grip that cornering leaves."""
        return jnp.sqrt(1 - jnp.minimum(squared * bend / GRIP, 0.999) ** 2)

    def brake(later: jax.Array, x: tuple) -> tuple[jax.Array, jax.Array]:
        most, bend, length = x
        squared = jnp.minimum(most, later + 2 * GRIP * left(later, bend) * length)
        return squared, squared

    def drive(now: jax.Array, x: tuple) -> tuple[jax.Array, jax.Array]:
        most, bend, length = x
        power = POWER / (jnp.sqrt(now) + 1e-3)
        gas = jnp.minimum(jnp.minimum(TRACTION, power), 0.5 * GRIP * left(now, bend))
        squared = jnp.minimum(most, now + 2 * gas * length)
        return squared, squared

    last = most[-1]
    _, braked = jax.lax.scan(brake, last, (most[:-1], bend[:-1], length), reverse=True)
    start = jnp.float32(0.5)
    _, driven = jax.lax.scan(
        drive, start, (jnp.append(braked[1:], last), bend[1:], length)
    )
    speed = jnp.sqrt(jnp.concatenate([start[None], driven]))
    return 2 * length / (speed[1:] + speed[:-1])


def laps(seeds: range, half_width: float) -> np.ndarray:
    """Least lap times found, s."""
    roads = [road(seed) for seed in seeds]
    length = max(len(tiles) for tiles, _ in roads)
    tiles, across = (
        jnp.array([padded(pair[i], length) for pair in roads], jnp.float32)
        for i in (0, 1)
    )
    counted = jnp.array([np.arange(length - 1) < len(t) - 1 for t, _ in roads])
    knots = np.arange(-6, length + 10, 2)
    basis = BSpline.design_matrix(np.arange(length), knots, 3).toarray()
    spline = jnp.asarray(basis, jnp.float32)

    def lap(
        points: jax.Array, tiles: jax.Array, across: jax.Array, counted: jax.Array
    ) -> jax.Array:
        offset = half_width * jnp.tanh(spline @ points)
        return jnp.sum(jnp.where(counted, seconds(offset, tiles, across), 0.0))

    adam = optax.adam(optax.cosine_decay_schedule(0.1, UPDATES, 0.02))

    def update(carry: tuple, _: None) -> tuple[tuple, None]:
        points, state, least = carry
        found, gradient = jax.vmap(jax.value_and_grad(lap))(
            points, tiles, across, counted
        )
        gradient = jnp.nan_to_num(gradient)
        size = jnp.linalg.norm(gradient, axis=1, keepdims=True)
        change, state = adam.update(gradient / (size + 1e-9), state)
        points = optax.apply_updates(points, change)
        return (points, state, jnp.minimum(least, found)), None

    points = jnp.zeros((len(seeds), spline.shape[1]))
    carry = points, adam.init(points), jnp.full(len(seeds), jnp.inf)
    (_, _, least), _ = jax.jit(
        lambda carry: jax.lax.scan(update, carry, None, UPDATES)
    )(carry)
    return np.asarray(least)


def main() -> None:
    """Prints the return of every track and their mean."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", default="1000:1010")
    parser.add_argument(
        "--half-width", type=float, default=6.0, help="of the lane it may use, m"
    )
    options = parser.parse_args()
    seeds = range(*map(int, options.seeds.split(":")))
    steps = np.ceil(laps(seeds, options.half_width) / c.TIME_STEP)
    returns = 1000 - REWARD_PER_STEP * steps
    for seed, value in zip(seeds, returns, strict=True):
        print(f"{seed}  {value:.1f}")
    print(f"mean {returns.mean():.1f}")


if __name__ == "__main__":
    main()
