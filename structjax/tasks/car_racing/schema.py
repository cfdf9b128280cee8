"""Names, units, ranges and meanings of Car Racing's observation and actions.

All numbers come from the constants that the observation itself is computed with.
"""

import math

from structjax.schema import ActionField, Field, Schema
from structjax.tasks.car_racing import constants as c
from structjax.tasks.car_racing.observation import (
    POSITION_SCALE,
    SPEED_SCALE,
    ObsConfig,
)

WHEELS = ("front_left", "front_right", "rear_left", "rear_right")
_EDGE = POSITION_SCALE * c.ROAD_HALF_WIDTH
_SPACING = POSITION_SCALE * c.TILE_STEP
_LENGTH = POSITION_SCALE * (c.WHEEL_Y[0] - c.WHEEL_Y[2])  # wheelbase
_VIEW = 1.1 * c.LOOK_AHEAD * _SPACING


def car_racing_schema(config: ObsConfig | None = None) -> Schema:
    """The fields of `observation.observe` under `config`, in its order."""
    config = config or ObsConfig()
    return Schema((*_road_fields(config), *_car_fields(config)), _ACTIONS)


def _unit(scale: float, base: str) -> str:
    """Unit of a value that is `scale` per `base`: `"100 m/s"`, `"pi rad"`, `"rad"`."""
    size = 1.0 / scale
    if math.isclose(size, math.pi):
        return f"pi {base}"
    return base if math.isclose(size, 1.0) else f"{size:.4g} {base}"


def _road_fields(config: ObsConfig) -> tuple[Field, ...]:
    metre = _unit(POSITION_SCALE, "m")
    tiles = c.LOOK_AHEAD
    half_turn = math.pi * config.heading_scale
    names = tuple(f"tile {i}" for i in range(tiles))
    return (
        Field(
            "tiles.x", tiles, metre, -_VIEW, _VIEW,
            f"lateral position of the next {tiles} road tiles' centre line in the "
            "car's frame, positive: to the right of the car (the car is left of the "
            "centre line); tile 0 is the nearest, the others follow in driving "
            f"direction, {_SPACING:.3g} apart; the road is {2 * _EDGE:.2g} wide, so "
            f"|tiles.x[0]| = {_EDGE:.2g} is its edge, and grass lies beyond",
            mirror=-1, elements=names,
        ),
        Field(
            "tiles.y", tiles, metre, -_VIEW, _VIEW,
            "longitudinal position of the same tiles in the car's frame, positive: "
            f"ahead of the car; the wheelbase is {_LENGTH:.2g} in this unit",
            mirror=1, elements=names,
        ),
        Field(
            "tiles.heading", tiles, _unit(config.heading_scale, "rad"),
            -half_turn, half_turn,
            "direction of the road at each tile relative to the car's own, positive: "
            "the road heads to the left",
            mirror=-1, elements=names,
        ),
        Field(
            "tiles.corner", tiles, "", 0.0, 1.0,
            "1 where the tile belongs to a sharp corner (at least four tiles that "
            "each turn the same way by more than 0.062 rad), else 0",
            mirror=1, elements=names,
        ),
    )  # fmt: skip


def _car_fields(config: ObsConfig) -> tuple[Field, ...]:
    rim = c.WHEEL_RADIUS / config.wheel_scale
    fastest = c.MAX_SPEED * SPEED_SCALE
    return (
        Field(
            "speed", None, _unit(SPEED_SCALE, "m/s"), 0.0, fastest,
            "speed of the car over the ground", mirror=1,
        ),
        _steer_field(config),
        Field(
            "yaw_rate", None, _unit(config.yaw_rate_scale, "rad/s"),
            -12.0 * config.yaw_rate_scale, 12.0 * config.yaw_rate_scale,
            "turning rate of the car, positive: turning left", mirror=-1,
        ),
        Field(
            "wheel_speed", 4, _unit(config.wheel_scale, "rad/s"),
            -200.0 * config.wheel_scale, 320.0 * config.wheel_scale,
            "rolling speed of the wheels (front left, front right, rear left, rear "
            f"right); the rim of radius {c.WHEEL_RADIUS:g} m moves at {rim:g} m/s per "
            "unit, and where that differs from the speed over the ground the wheel "
            "slips",
            mirror=1, mirror_order=(1, 0, 3, 2), elements=WHEELS,
        ),
    )  # fmt: skip


def _steer_field(config: ObsConfig) -> Field:
    if config.steer == "hull":
        return Field(
            "heading", None, "pi rad", -1.0, 1.0,
            "absolute direction of the car, 0 is north, positive: to the left",
            mirror=-1,
        )  # fmt: skip
    most = c.STEER_LIMIT / math.pi
    return Field(
        "steer_angle", None, "pi rad", -1.2 * most, 1.2 * most,
        "angle of the front wheels against the car, positive: turned left; its limit "
        f"is about +-{most:.2g}, and it follows the steer action at no more than "
        f"{c.STEER_RATE * c.TIME_STEP / math.pi:.2g} a step",
        mirror=-1,
    )  # fmt: skip


_ACTIONS = (
    ActionField(
        "steer",
        "where the front wheels turn to: -1 full left, +1 full right; steer is the "
        "wanted wheel angle in rad to the right, and the wheels stop at "
        f"{c.STEER_LIMIT:g} rad",
        low=-1.0, high=1.0, mirror=-1,
    ),
    ActionField(
        "gas",
        "engine of the rear wheels; it rises by at most "
        f"{c.GAS_RATE:g} a step and falls at once",
        low=0.0, high=1.0, mirror=1,
    ),
    ActionField(
        "brake",
        f"takes {c.BRAKE_RATE:g} rad/s of rolling speed per step and unit from every "
        "wheel; 0.9 and more locks them",
        low=0.0, high=1.0, mirror=1,
    ),
)  # fmt: skip

CAR_RACING_SCHEMA = car_racing_schema()
