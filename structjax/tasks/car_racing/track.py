"""Gymnasium's CarRacing-v3 track generator in NumPy, bit-identical for equal seeds.

Reference: gymnasium 1.3, `envs/box2d/car_racing.py`, `_create_track`.
"""

import math
from typing import NamedTuple

import numpy as np

from structjax.ranges import episode_seed

CHECKPOINTS = 12
PLAIN_RADIUS = 150.0  # m
DETAIL_STEP = 3.5  # m between nodes
TURN_RATE = 0.31  # rad per node, at most
WALK_STEPS = 2500
WALK_LAPS = 4
BORDER_RUN = 4  # consecutive hard turns that raise a kerb


class Track(NamedTuple):
    """One closed road; tile i is the quad between the nodes i-1 and i.

    Attributes:
      alpha: `[N]` polar angle of each node, rad.
      beta: `[N]` heading of the road, rad, 0 along +y, growing to the left; it may jump
        by a full turn.
      x: `[N]` node position, m.
      y: `[N]` node position, m.
      border: `[N]` bool, whether the tile has a red-white kerb (a hard corner).
      n: number of tiles N.
    """

    alpha: np.ndarray
    beta: np.ndarray
    x: np.ndarray
    y: np.ndarray
    border: np.ndarray
    n: int


class _Node(NamedTuple):
    alpha: float
    beta: float
    x: float
    y: float


def make_track(seed: int) -> Track:
    """The track of `gymnasium.make("CarRacing-v3").reset(seed=seed)`.

    A pure function of the seed. Failed attempts draw on from the same random stream, as
    Gymnasium does (6 % of the attempts fail).

    Raises:
      StructjaxError: no such seed.
    """
    seed = episode_seed(seed)
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed)))
    while True:
        lap = _closed_lap(_walk(_checkpoints(rng)))
        if lap is not None:
            break
    alpha, beta, x, y = np.array(lap, np.float64).T.copy()
    return Track(alpha, beta, x, y, kerbs(beta), len(lap))


def _checkpoints(rng: np.random.Generator) -> list[tuple[float, float, float]]:
    """Twelve random checkpoints `(alpha, x, y)`, first and last of them fixed."""
    checkpoints = []
    for c in range(CHECKPOINTS):
        noise = rng.uniform(0, 2 * math.pi * 1 / CHECKPOINTS)
        alpha = 2 * math.pi * c / CHECKPOINTS + noise
        radius = rng.uniform(PLAIN_RADIUS / 3, PLAIN_RADIUS)
        if c in (0, CHECKPOINTS - 1):
            alpha = 2 * math.pi * c / CHECKPOINTS
            radius = 1.5 * PLAIN_RADIUS
        checkpoints.append((alpha, radius * math.cos(alpha), radius * math.sin(alpha)))
    return checkpoints


def _walk(checkpoints: list[tuple[float, float, float]]) -> list[_Node]:
    """Steers from checkpoint to checkpoint for about five laps."""
    x, y, beta = 1.5 * PLAIN_RADIUS, 0.0, 0.0
    target = laps = 0
    other_side = False
    nodes: list[_Node] = []
    while laps <= WALK_LAPS and len(nodes) < WALK_STEPS:
        alpha = math.atan2(y, x)
        if other_side and alpha > 0:
            laps += 1
            other_side = False
        if alpha < 0:
            other_side = True
            alpha += 2 * math.pi
        alpha, target = _next_target(checkpoints, alpha, target)
        _, target_x, target_y = checkpoints[target % CHECKPOINTS]
        # The direction is taken before `beta` is wrapped or turns, as in the original.
        right_x, right_y = math.cos(beta), math.sin(beta)
        beta = _near(beta, alpha)
        offset = right_x * (target_x - x) + right_y * (target_y - y)
        turned = _turn(beta, offset * 6.0)
        x += -right_y * DETAIL_STEP
        y += right_x * DETAIL_STEP
        nodes.append(_Node(alpha, beta * 0.5 + turned * 0.5, x, y))
        beta = turned
    return nodes


def _next_target(
    checkpoints: list[tuple[float, float, float]], alpha: float, target: int
) -> tuple[float, int]:
    """First checkpoint at or after `alpha`; a full turn back when the list wraps."""
    while alpha > checkpoints[target % CHECKPOINTS][0]:
        target += 1
        if target % CHECKPOINTS == 0:
            alpha -= 2 * math.pi
    return alpha, target


def _near(beta: float, alpha: float) -> float:
    """`beta` plus full turns, within 1.5 pi of `alpha`."""
    while beta - alpha > 1.5 * math.pi:
        beta -= 2 * math.pi
    while beta - alpha < -1.5 * math.pi:
        beta += 2 * math.pi
    return beta


def _turn(beta: float, offset: float) -> float:
    """Turns towards a target that lies `offset` to the right, with a dead zone."""
    if offset > 0.3:
        return beta - min(TURN_RATE, abs(0.001 * offset))
    if offset < -0.3:
        return beta + min(TURN_RATE, abs(0.001 * offset))
    return beta


def _closed_lap(nodes: list[_Node]) -> list[_Node] | None:
    """The last full lap, or None when the walk has none that closes."""
    start_alpha = 2 * math.pi * (-0.5) / CHECKPOINTS
    crossings = [
        i
        for i in range(1, len(nodes))
        if nodes[i].alpha > start_alpha >= nodes[i - 1].alpha
    ]
    if len(crossings) < 2:
        return None
    lap = nodes[crossings[-2] : crossings[-1] - 1]
    first, last = lap[0], lap[-1]
    gap_x = math.cos(first.beta) * (first.x - last.x)
    gap_y = math.sin(first.beta) * (first.y - last.y)
    return None if math.sqrt(gap_x * gap_x + gap_y * gap_y) > DETAIL_STEP else lap


def kerbs(beta: np.ndarray) -> np.ndarray:
    """`[N]` bool: tiles with a kerb, from the road headings `[N]`.

    A hard corner is a run of four turns the same way; the flag then spreads back over
    its four tiles, past the start line too.
    """
    turn = beta - np.roll(beta, 1)
    run = np.stack([np.roll(turn, i) for i in range(BORDER_RUN)])
    hard = (np.abs(run) > TURN_RATE * 0.2).all(0)
    border = hard & (np.abs(np.sign(run).sum(0)) == BORDER_RUN)
    for i in range(len(border)):  # in order: a flag that wraps spreads once more
        for back in range(BORDER_RUN):
            border[i - back] |= border[i]
    return border
