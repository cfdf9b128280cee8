"""A float64 evaluator of structures, by NumPy alone, for the tests of the lint."""

import numpy as np

from structjax.language.structure import (
    Call,
    Index,
    Number,
    Observation,
    Slice,
    Variable,
    Weight,
)


def _safe_div(a, b):
    near = np.abs(b) < 1e-6
    return np.where(near, 0.0, a / np.where(near, 1.0, b))


def _weighted(v, w):
    return np.sum(v * w) / np.sum(w)


NUMPY = {
    "add": lambda a, b: 1.0 * a + b,
    "sub": lambda a, b: 1.0 * a - b,
    "mul": lambda a, b: 1.0 * a * b,
    "div": lambda a, b: np.divide(1.0 * a, b),
    "pow": lambda a, b: np.power(1.0 * a, b),
    "neg": lambda a: -1.0 * a,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "eq": np.equal,
    "ne": np.not_equal,
    "and_": np.logical_and,
    "or_": np.logical_or,
    "not_": np.logical_not,
    "where": np.where,
    "abs": lambda a: np.abs(1.0 * a),
    "relu": lambda x: np.maximum(x, 0.0),
    "clip": lambda x, low, high: np.minimum(np.maximum(x, low), high),
    "softplus": lambda x: np.logaddexp(0, x),
    "sqrt": lambda x: np.sqrt(np.maximum(x, 0.0)),
    "exp": lambda x: np.exp(1.0 * x),
    "log": lambda x: np.log(np.maximum(x, 1e-6)),
    "square": lambda x: np.square(1.0 * x),
    "sign": lambda x: np.sign(1.0 * x),
    "tanh": lambda x: np.tanh(1.0 * x),
    "sigmoid": lambda x: 1 / (1 + np.exp(-1.0 * x)),
    "sin": lambda x: np.sin(1.0 * x),
    "cos": lambda x: np.cos(1.0 * x),
    "atan2": lambda y, x: np.arctan2(1.0 * y, 1.0 * x),
    "wrap_angle": lambda x: (x + np.pi) % (2 * np.pi) - np.pi,
    "safe_div": _safe_div,
    "nan_clean": lambda x: np.nan_to_num(1.0 * x, posinf=0.0, neginf=0.0),
    "minimum": lambda a, b: np.minimum(1.0 * a, b),
    "maximum": lambda a, b: np.maximum(1.0 * a, b),
    "reduce_sum": lambda v: np.sum(1.0 * v),
    "reduce_mean": np.mean,
    "reduce_min": lambda v: np.min(1.0 * v),
    "reduce_max": lambda v: np.max(1.0 * v),
    "weighted_mean": _weighted,
    "norm": np.linalg.norm,
    "dot": lambda a, b: np.dot(1.0 * a, b),
    "normalise": lambda v: v / np.linalg.norm(v),
    "rotate2d": lambda v, angle: np.array(
        [
            v[0] * np.cos(angle) - v[1] * np.sin(angle),
            v[0] * np.sin(angle) + v[1] * np.cos(angle),
        ]
    ),
    "stack": lambda *s: np.array(s),
    "concat": lambda *v: np.concatenate(v),
}


def _leaf(node, structure, schema, obs, known):
    match node:
        case Number(number):
            return np.float64(number)
        case Observation(field):
            part = obs[schema.slice_of(field)]
            size = next(f.size for f in schema.observations if f.name == field)
            return part[0] if size is None else part
        case Weight(name):
            return next(p.initial for p in structure.parameters if p.name == name)
        case Variable(name):
            return known[name]
    raise TypeError(node)


def evaluate(structure, schema, obs):
    """Name -> value of all latents and `mean of <action>`, at the initial weights."""
    known = {}

    def value(node):
        match node:
            case Index(vector, position):
                return value(vector)[position]
            case Slice(vector, start, stop):
                return value(vector)[start:stop]
            case Call(operator, arguments):
                return NUMPY[operator](*map(value, arguments))
        return _leaf(node, structure, schema, obs, known)

    with np.errstate(all="ignore"):
        for latent in structure.latents:
            known[latent.name] = value(latent.expression)
        for head in structure.heads:
            known[f"mean of {head.action}"] = value(head.arguments[0])
    return known
