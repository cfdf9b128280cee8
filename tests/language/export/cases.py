"""Programs for the exports: the fixtures, every operator, every head, memory."""

import numpy as np
from language.programs import CHOICE, DOOR, FIXTURES, SMALL

from structjax.language.parse import parse
from structjax.schema import ActionField, Field, Schema
from structjax.tasks.car_racing.schema import CAR_RACING_SCHEMA as CAR

NAMES = ("r0", "r1", "r2", "r3", "car_a", "car_b", "door_a")

OPERATORS = """
gain = weight(0.7)
low = weight(-0.2, high=0.0)

def twice(x):
    return x + x

def policy(obs):
    x = obs.tiles.x
    y = obs.tiles.y
    s = obs.speed
    u = obs.yaw
    arithmetic = (s + u - s * u) / (2 + s ** 2) - -u
    powers = s ** 3 + s ** -2 + u ** 0.5 + u ** -0.5 + s ** 0
    ahead = s < u
    same = s == u
    apart = s != 0
    flags = x >= 0
    both = ahead and not same or apart
    counted = ahead + both * 2 - same
    chosen = where(flags, x, -0.5)
    blend = s if ahead else twice(u)
    flag = flags[0] if both else same
    bounds = abs(s) + relu(u) + clip(s, low, 0.4) + softplus(3 * s) + sign(u)
    curves = sqrt(s) + exp(u) + log(s) + square(u) + tanh(s) + sigmoid(4 * u)
    angles = sin(s) + cos(u) + atan2(s, u) + wrap_angle(9 * u)
    safe = safe_div(1, s) + nan_clean(1 / s)
    less = min(s, u, 0.3) + max(s, low)
    reduced = sum(x) + mean(y) + min(x) + max(y) + mean(flags)
    weighted = weighted_mean(x, y) + norm(x) + dot(x, y) + sum(normalise(y))
    joined = concat(x[1:], stack(s, 1, ahead), y[:2])
    turned = rotate2d(joined[1:3], 3 * u)
    space = rotate(obs.quat, x) + rotate_inverse(obs.quat, y)
    total = 0
    for i in range(3):
        total = total + x[i] * joined[2 * i]
    steer = arithmetic + gain * powers + counted + sum(chosen) + blend + flag
    more = bounds + curves + angles + safe + less + reduced + weighted
    rest = sum(turned) + sum(space) + total
    both_ways = steer + more
    return action(steer=normal(both_ways, std=abs(rest)), gas=normal(rest, fixed(0.2)))
"""


def load(name):
    """Structure, schema and documentation of a named case."""
    if name == "operators":
        program = parse(OPERATORS, SMALL)
        return program.structure, SMALL, program.docs
    schema = DOOR if name.startswith("door") else CAR
    program = parse((FIXTURES / f"{name}.py").read_text(), schema)
    return program.structure, schema, program.docs


def observations(schema, number=40, seed=0):
    """Random observations in range, and edge cases: zeros, NaN, infinities, ones."""
    rng = np.random.default_rng(seed)
    parts = [rng.uniform(f.low, f.high, (number, f.width)) for f in schema.observations]
    obs = np.concatenate(parts, 1).astype(np.float32)
    obs[0] = 0.0
    obs[1] = np.nan
    obs[2] = np.inf
    obs[3] = -np.inf
    obs[4, ::2] = 0.0
    obs[5, ::3] = np.nan
    obs[6, 1::2] = -0.0
    obs[7] = 1.0
    obs[8] = -1.0
    obs[9, ::5] = np.inf
    return obs


PLANT = Schema(
    (
        Field("error", None, "", -2.0, 2.0, ""),
        Field("gap", 2, "", -1.0, 1.0, ""),
    ),
    (
        ActionField("pull", "", low=-2.0, high=1.0),
        ActionField("push", ""),
    ),
)

INTEGRATOR = parse(
    """
gain = weight(0.5)

def policy(obs):
    integral = previous(integral, start=0.25) + obs.error
    pulling = integral > 1 or previous(phase, start=0) > 0.5  # latches
    phase = 1 if pulling else 0
    return action(pull=normal(gain * integral, std=0.5), push=normal(phase))
""",
    PLANT,
).structure

LATCH = parse(
    """
def policy(obs):
    count = previous(on, start=True) + previous(count, start=0)
    armed = previous(on, start=True) if obs.gap[0] > 0 else obs.gap[1] > 0
    held = previous(on, start=True) and not previous(armed, start=False)
    on = held or obs.error > 1
    level = previous(on, start=True) * 0.5 + (1 if previous(on, start=True) else -1)
    return action(pull=normal(level), push=normal(count))
""",
    PLANT,
).structure
"""Remembers truth values, which count as numbers too."""


def headed(family, mean, std):
    """Both actions of this family, with arguments from the observation."""
    head = f"{family}({mean} * obs.error, std={std} + abs(obs.gap[0]))"
    text = f"def policy(obs):\n    return action(pull={head}, push={head})\n"
    return parse(text, PLANT).structure


COUPLED = parse(
    """
gain = weight(0.75)

def policy(obs):
    return action(pull=normal(obs.error, std=fixed(0.5)),
                  push=normal(obs.error, std=fixed(0.2)), coupling=gain)
""",
    PLANT,
).structure

CHOOSING = """
lean = weight(2.0)

def policy(obs):
    left = lean * obs.angle
    return action(push=categorical(left, obs.state[1]))
"""


def choosing():
    """A program with a discrete action, and its schema."""
    return parse(CHOOSING, CHOICE).structure, CHOICE
