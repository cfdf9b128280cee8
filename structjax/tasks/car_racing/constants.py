"""Physical constants of Gymnasium's CarRacing-v3, in metres, seconds and kilograms.

Masses, centres and moments of inertia follow from the polygons of
`gymnasium/envs/box2d/car_dynamics.py`; the rest is copied from it and from
`car_racing.py` (gymnasium 1.3.0, Box2D 2.3.10).
"""

import math
from typing import Final, NamedTuple

Polygon = tuple[tuple[float, float], ...]

SIZE: Final = 0.02  # metres per drawing unit of the car
TIME_STEP: Final = 1.0 / 50.0
PLAYFIELD: Final = 2000.0 / 6.0  # |x| or |y| beyond it ends the episode
TILE_STEP: Final = 21.0 / 6.0
ROAD_HALF_WIDTH: Final = 40.0 / 6.0

ENGINE_POWER: Final = 100_000_000 * SIZE**2
WHEEL_SPIN_INERTIA: Final = 4000 * SIZE**2
ROAD_GRIP: Final = 1_000_000 * SIZE**2  # N per wheel
GRASS_GRIP: Final = 0.6 * ROAD_GRIP
TYRE_STIFFNESS: Final = 205_000 * SIZE**2  # N per m/s of slip
WHEEL_RADIUS: Final = 27 * SIZE
WHEEL_HALF_WIDTH: Final = 14 * SIZE
WHEEL_HALF_LENGTH: Final = 27 * SIZE
BRAKE_RATE: Final = 15.0  # rad/s of wheel spin per step under full brake
GAS_RATE: Final = 0.1  # largest rise of the gas per step
STEER_RATE: Final = 3.0  # rad/s
STEER_LIMIT: Final = 0.4  # rad
MAX_SPEED: Final = 2.0 / TIME_STEP  # b2_maxTranslation: 2 m per step

ANGULAR_SLOP: Final = 2.0 / 180.0 * math.pi
OVERLAP_MARGIN: Final = 0.02  # two polygon radii: closer polygons count as touching
SOLVER_ITERATIONS: Final = 180
POSITION_ITERATIONS: Final = 60
LINEAR_SLOP: Final = 0.005
MAX_MOTOR_IMPULSE: Final = 180 * 900 * SIZE**2 * TIME_STEP

NODES: Final = 416  # padded length of a track; the longest of 4,096 has 393 nodes
# Eight tiles in all and sixteen rows: powers of two vectorise, 1.8 times the steps/s of
# nine tiles. No contact further than -2 ... +3 was seen in 66,000 of the original.
BACK: Final = 3  # tiles behind the nearest node that a wheel may touch
AHEAD: Final = 4  # tiles ahead of it
LOOK_AHEAD: Final = 12  # tiles in the observation
WINDOW: Final = BACK + 1 + LOOK_AHEAD  # rows of the node table used in one step
COLUMNS: Final = 10  # of the node table
FAR_AWAY: Final = 1e6  # coordinate of padding nodes

_HULL: Final[tuple[Polygon, ...]] = (
    ((-60, 130), (60, 130), (60, 110), (-60, 110)),
    ((-15, 120), (15, 120), (20, 20), (-20, 20)),
    (
        *((25, 20), (50, -10), (50, -40), (20, -90)),
        *((-20, -90), (-50, -40), (-50, -10), (-25, 20)),
    ),
    ((-50, -120), (50, -120), (50, -90), (-50, -90)),
)
# Front left, front right, rear left, rear right, in the hull's frame (right, ahead).
WHEEL_X: Final = (-55 * SIZE, 55 * SIZE, -55 * SIZE, 55 * SIZE)
WHEEL_Y: Final = (80 * SIZE, 80 * SIZE, -82 * SIZE, -82 * SIZE)


class Mass(NamedTuple):
    """Mass, centre `(x, y)` and moment of inertia about that centre."""

    mass: float
    x: float
    y: float
    inertia: float


def combine(parts: list[Mass]) -> Mass:
    """The rigid union of `parts`."""
    mass = sum(p.mass for p in parts)
    x = sum(p.mass * p.x for p in parts) / mass
    y = sum(p.mass * p.y for p in parts) / mass
    inertia = sum(p.inertia + p.mass * ((p.x - x) ** 2 + (p.y - y) ** 2) for p in parts)
    return Mass(mass, x, y, inertia)


def polygon_mass(vertices: Polygon, density: float) -> Mass:
    """Mass of a simple polygon given in drawing units."""
    points = [(x * SIZE, y * SIZE) for x, y in vertices]
    area = first_x = first_y = second = 0.0
    for (x1, y1), (x2, y2) in zip(points, points[1:] + points[:1], strict=True):
        cross = x1 * y2 - x2 * y1
        area += cross / 2
        first_x += cross * (x1 + x2) / 6
        first_y += cross * (y1 + y2) / 6
        second += cross * (x1**2 + x1 * x2 + x2**2 + y1**2 + y1 * y2 + y2**2) / 12
    x, y = first_x / area, first_y / area
    inertia = abs(second) - abs(area) * (x**2 + y**2)
    return Mass(density * abs(area), x, y, density * inertia)


HULL: Final = combine([polygon_mass(polygon, 1.0) for polygon in _HULL])
WHEEL: Final = polygon_mass(((-14, 27), (14, 27), (14, -27), (-14, -27)), 0.1)
CAR: Final = combine(
    [HULL]
    + [
        Mass(WHEEL.mass, x, y, WHEEL.inertia)
        for x, y in zip(WHEEL_X, WHEEL_Y, strict=True)
    ]
)
OWN_INERTIA: Final = HULL.inertia + 4 * WHEEL.inertia


def _hull_share() -> tuple[float, ...]:
    """Turn of the hull, rad, per moment (m^2) of the gap of each wheel's joint."""
    shared = HULL.inertia * (1 / HULL.mass + 1 / WHEEL.mass)
    return tuple(
        1 / (shared + (x - HULL.x) ** 2 + (y - HULL.y) ** 2)
        for x, y in zip(WHEEL_X, WHEEL_Y, strict=True)
    )


HULL_SHARE: Final = _hull_share()
# In a step a wheel centre moves along its tangent and ends at the polar angle
# atan(h w), short of h w by (h w)^3 / 3. The position solver closes this gap by the
# effective masses: it turns the hull back by POSITION_CORRECTION (h w)^3.
POSITION_CORRECTION: Final = sum(
    share * ((x - HULL.x) ** 2 + (y - HULL.y) ** 2) / 3
    for share, x, y in zip(HULL_SHARE, WHEEL_X, WHEEL_Y, strict=True)
)
# Impulse that a joint motor winds up per solver step and rad/s against its limit.
WINDUP_RATE: Final = SOLVER_ITERATIONS / (1 / HULL.inertia + 1 / WHEEL.inertia)
