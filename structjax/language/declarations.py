"""Reads module level: weights, constants, helpers, the policy."""

import ast
import math

import numpy as np

from structjax.language.expressions import lower_constant
from structjax.language.names import NO_WEIGHTS, RESERVED
from structjax.language.scope import Lowering, Scope
from structjax.language.structure import Parameter
from structjax.language.syntax import excerpt, is_docstring

INSIDE = 1e-3
COARSE = 1e-3
"""Relative error of a start that is worth a warning."""
LEAST = 1e-37
"""Shares of a range below it are 0 in single precision."""
_SPELLING = 'name = weight(0.5, sign="+", low=0.0, high=1.0)'
_OPTIONS = ("init", "sign", "low", "high")


def read_module(tree: ast.Module, state: Lowering) -> ast.FunctionDef | None:
    """Declares everything at module level; returns the policy, if there is one."""
    policy: ast.FunctionDef | None = None
    body = tree.body[1:] if tree.body and is_docstring(tree.body[0]) else tree.body
    for node in body:
        if isinstance(node, ast.FunctionDef):
            declared = _function(node, state)
            policy = policy or (node if declared and node.name == "policy" else None)
        elif isinstance(node, ast.Assign) and len(node.targets) == 1:
            _assignment(node, policy, state)
        elif node not in state.refused:
            text = f"`{excerpt(node)}` is not accepted at module level"
            hint = "module level holds weights, constants, helpers and `policy`"
            state.error("TOPLEVEL", node, text, hint)
    if policy is None and "policy" not in state.lines:
        _no_entry(tree, state)
    return policy


def _no_entry(tree: ast.Module, state: Lowering) -> None:
    text = "there is no `def policy(obs):`"
    names = list(state.helpers)
    hint = f"name `{names[-1]}` so" if names else "the program ends in it"
    state.error("NO_ENTRY", tree, text, hint)


def _function(node: ast.FunctionDef, state: Lowering) -> bool:
    """Declares a helper or the policy; whether it can be read."""
    names = [argument.arg for argument in node.args.args]
    wanted = "obs" if node.name == "policy" else ", ".join(names)
    known = RESERVED - {"policy"}
    if not _free(node.name, node, state, known):
        return False
    state.lines[node.name] = node.lineno
    if node.decorator_list:
        text = f"`{node.name}` has a decorator"
        state.error("NODE", node, text, "delete it")
    plain = _plain(node)
    if not plain or (node.name == "policy" and names != ["obs"]):
        text = f"`def {node.name}({ast.unparse(node.args)})` has a wrong signature"
        hint = f"write `def {node.name}({wanted}):`, without annotations and defaults"
        state.error("SIGNATURE", node, text, hint)
        return False
    if node.name != "policy":
        for name in names:
            _free(name, node, state, RESERVED - {"obs"})
        state.helpers[node.name] = node
    return True


def _plain(node: ast.FunctionDef) -> bool:
    """Whether the parameters are plain, distinct names."""
    a = node.args
    names = [argument.arg for argument in a.args]
    special = [a.vararg, a.kwarg, node.returns, *a.posonlyargs, *a.kwonlyargs]
    special += [*a.defaults, *a.kw_defaults, *getattr(node, "type_params", ())]
    special += [argument.annotation for argument in a.args]
    return not any(special) and len(set(names)) == len(names)


def _free(name: str, node: ast.stmt, state: Lowering, taken: frozenset[str]) -> bool:
    """Whether a name can be declared; notes the reason otherwise."""
    if name.startswith("__"):
        text = f"`{name}` begins with two underscores"
        state.error("DUNDER", node, text, "choose another name")
    elif name in taken:
        text = f"`{name}` has a meaning in the language"
        hint = "choose another name"
        if isinstance(node, ast.FunctionDef) and name == node.name:
            hint = "it is there already: delete this definition"
        state.error("SHADOW", node, text, hint)
    elif name in state.lines:
        text = f"`{name}` is already declared in line {state.lines[name]}"
        state.error("REASSIGNED", node, text, "every name is declared once")
    else:
        return True
    return False


def _assignment(
    node: ast.Assign, policy: ast.FunctionDef | None, state: Lowering
) -> None:
    target = node.targets[0]
    if target in state.refused:
        return
    if not isinstance(target, ast.Name):
        text = f"`{excerpt(node)}` is not accepted at module level"
        state.error("TOPLEVEL", node, text, f"write `{_SPELLING}`")
        return
    if policy is not None:
        text = f"`{target.id}` is declared after `policy`"
        state.error("TOPLEVEL", node, text, "weights and constants stand before it")
    call = node.value
    weight = (
        isinstance(call, ast.Call)
        and isinstance(call.func, ast.Name)
        and call.func.id == "weight"
    )
    if not _free(target.id, node, state, RESERVED | (NO_WEIGHTS if weight else set())):
        return
    state.lines[target.id] = node.lineno
    if weight and isinstance(call, ast.Call):
        state.parameters[target.id] = _weight(target.id, call, state)
        return
    before = state.problems.count
    value = lower_constant(call, Scope(), state)
    if value is None and state.problems.count == before and call not in state.refused:
        text = f"`{target.id}` is not a constant number"
        state.error("WEIGHT", node, text, f"write `{_SPELLING}`, or `{target.id} = 2`")
    state.constants[target.id] = value


def _weight(name: str, call: ast.Call, state: Lowering) -> Parameter | None:
    """A declared weight, or None when it is faulty (and noted)."""
    options = _options(call, state)
    if options is None:
        return None
    numbers = {key: _number(key, node, state) for key, node in options.items()}
    if any(value is None for value in numbers.values()):
        return None
    low, high = _bounds(numbers)
    if low is not None and high is not None and low >= high:
        text = f"weight `{name}` has an empty range, low {low:g} and high {high:g}"
        hint = 'low is below high; sign="+" means low=0, sign="-" means high=0'
        state.error("WEIGHT", call, text, hint)
        return None
    initial = numbers["init"]
    assert initial is not None
    return bounded_parameter(name, initial, low, high, call, state)


def _options(call: ast.Call, state: Lowering) -> dict[str, ast.expr] | None:
    """The arguments of `weight` by name."""
    options = dict(zip(_OPTIONS, call.args, strict=False))
    for keyword in call.keywords:
        if keyword.arg not in _OPTIONS or keyword.arg in options:
            text = f"`{excerpt(call)}` has a wrong argument `{keyword.arg or '**'}`"
            state.error("WEIGHT", call, text, f"write `{_SPELLING}`")
            return None
        options[keyword.arg] = keyword.value
    if "init" not in options or len(call.args) > len(_OPTIONS):
        text = f"`{excerpt(call)}` needs an initial value"
        state.error("WEIGHT", call, text, f"write `{_SPELLING}`")
        return None
    none = [k for k, v in options.items() if _is_none(v) and k != "init"]
    return {key: value for key, value in options.items() if key not in none}


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _number(key: str, node: ast.expr, state: Lowering) -> float | None:
    """An argument of `weight`; the signs + and - as +1 and -1."""
    if key == "sign":
        sign = node.value if isinstance(node, ast.Constant) else None
        if sign in ("+", "-"):
            return 1.0 if sign == "+" else -1.0
        if node not in state.refused:
            text = f"sign={excerpt(node)} is not a sign"
            state.error("WEIGHT", node, text, 'write sign="+" or sign="-"')
        return None
    before = state.problems.count
    value = lower_constant(node, Scope(), state)
    if value is None and state.problems.count == before and node not in state.refused:
        text = f"{key} `{excerpt(node)}` of a weight is not a constant number"
        state.error("WEIGHT", node, text, f"write `{_SPELLING}`")
    return value


def _bounds(numbers: dict[str, float | None]) -> tuple[float | None, float | None]:
    """The intersection of sign and bounds."""
    sign, low, high = (numbers.get(key) for key in ("sign", "low", "high"))
    if sign == 1:
        low = 0.0 if low is None else max(low, 0.0)
    if sign == -1:
        high = 0.0 if high is None else min(high, 0.0)
    return low, high


def interval(low: float | None, high: float | None) -> str:
    """The numbers between bounds of which one at least is there."""
    if low is None or high is None:
        return f"of at most {high:g}" if low is None else f"of at least {low:g}"
    return f"in [{low:g}, {high:g}]"


def bounded_parameter(
    name: str,
    initial: float,
    low: float | None,
    high: float | None,
    node: ast.AST,
    state: Lowering,
) -> Parameter | None:
    """A parameter that starts inside its bounds.

    A start on a bound is moved inside by 1e-3 of the range, 1e-3 when one-sided.
    """
    lowest = -math.inf if low is None else low
    highest = math.inf if high is None else high
    if not lowest <= initial <= highest:
        text = f"weight `{name}` starts at {initial:g}, outside its bounds"
        hint = f"a start {interval(low, high)} is accepted"
        state.error("WEIGHT", node, text, hint)
        return None
    step = INSIDE * (highest - lowest) if highest - lowest < math.inf else INSIDE
    moved = initial
    if initial in (lowest, highest):
        moved = initial + step if initial == lowest else initial - step
        state.problems.warn(
            "START_ON_BOUND",
            getattr(node, "lineno", 1),
            f"weight `{name}` starts on its bound {initial:g}",
            f"it was moved inside, to {moved:g}",
        )
    _check_start(name, moved, low, high, node, state)
    return Parameter(name, moved, low, high)


def _check_start(
    name: str,
    start: float,
    low: float | None,
    high: float | None,
    node: ast.AST,
    state: Lowering,
) -> None:
    """Warns when single precision cannot hold a start between its bounds."""
    played = _in_single_precision(start, low, high)
    if abs(played - start) > COARSE * (abs(start) or 1.0):
        hint = "write 0"  # the only fault of a number without bounds: it is too small
        if (low, high) != (None, None):
            hint = f"a start {interval(low, high)} is coarse there: narrow the bounds"
        state.problems.warn(
            "COARSE_START",
            getattr(node, "lineno", 1),
            f"weight `{name}` starts at {start:g}, of which single precision makes "
            f"{played:g}",
            hint,
        )


def _in_single_precision(start: float, low: float | None, high: float | None) -> float:
    """The start as a policy plays it: its distance from the bound nearer to 0."""
    single = np.float32
    if low is None and high is None:
        return float(single(start))
    bounds = [bound for bound in (low, high) if bound is not None]
    near = min(bounds, key=abs)
    distance = abs(start - near)
    if len(bounds) == 1:
        return float(single(near) + single(math.copysign(distance, start - near)))
    span = bounds[1] - bounds[0]
    share = float(single(distance / span))
    away = math.copysign(span * share if share >= LEAST else 0.0, start - near)
    return float(single(near) + single(away))
