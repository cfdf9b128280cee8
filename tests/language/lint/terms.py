"""Every operator applied to every kind of argument, as program text."""

from itertools import product

from structjax.language.operators import OPERATORS

SCALARS = ("obs.yaw", "obs.speed", "(obs.speed + obs.yaw)", "0", "-2", "w", "u", "0.7")
VECTORS = ("obs.tiles.x", "obs.tiles.y", "obs.quat[1:]", "stack(obs.yaw, obs.yaw, 0)")
CONDITIONS = ("obs.speed > 0.2", "obs.yaw < u", "abs(obs.yaw) >= 0.5", "0 < 1")
VECTORIAL = ("norm", "normalise", "dot", "weighted_mean")
LEFT_OUT = ("rotate2d", "rotate", "rotate_inverse", "stack", "concat")


def _applied(row):
    names = [row.call] * row.arity[0]
    if row.name in ("and_", "or_", "not_", "where", "pow", *LEFT_OUT):
        return
    if row.name.startswith("reduce_") or row.name in VECTORIAL:
        for arguments in product(VECTORS, repeat=len(names)):
            text = f"{row.call}({', '.join(arguments)})"
            yield f"{text}[1]" if row.name == "normalise" else text
        return
    for arguments in product(SCALARS, repeat=len(names)):
        if row.name == "div" and arguments[1] == "0":
            continue  # refused where both are constants
        if row.call:
            yield f"{row.call}({', '.join(arguments)})"
        elif row.arity[0] == 1:
            yield f"-({arguments[0]})"
        else:
            yield f"{arguments[0]} {row.spelling.split()[1]} {arguments[1]}"


def _special():
    for x, exponent in product(SCALARS, (-3, -2, 0.5, 1, 2, 3, 4)):
        if x not in ("0", "-2"):  # some powers of constants are refused
            yield f"{x} ** {exponent}"
    for condition, one, other in product(CONDITIONS, SCALARS, SCALARS):
        yield f"where({condition}, {one}, {other})"
    for one, other in product(CONDITIONS, CONDITIONS):
        yield f"({one}) and ({other})"
        yield f"({one}) or not ({other})"
    for v, w in product(VECTORS, VECTORS):
        yield f"concat({v}, {w})[4]"
        yield f"min({v} * {w})"
        yield f"rotate2d({v}[1:], obs.yaw)[0]"
    for i, j in product(range(4), range(4)):
        yield f"obs.quat[{i}] - obs.quat[{j}]"
        yield f"mean(obs.quat[{min(i, j)}:{max(i, j) + 1}])"


TERMS = (*(text for row in OPERATORS.values() for text in _applied(row)), *_special())
BATCH = 200
MODULE = "w = weight(0.5)\nu = weight(-0.3, high=0.0)\n"
HEADS = "steer=normal(w * obs.yaw), gas=normal(u * obs.speed)"


def programs():
    """Programs that hold all terms as latents `t0, t1, ...`, and the terms by name."""
    for start in range(0, len(TERMS), BATCH):
        terms = {f"t{i}": text for i, text in enumerate(TERMS[start : start + BATCH])}
        body = "".join(f"    {name} = {text}\n" for name, text in terms.items())
        text = f"{MODULE}def policy(obs):\n{body}    return action({HEADS})\n"
        yield text, terms
