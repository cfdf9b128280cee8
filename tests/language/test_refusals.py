"""Every other kind of fault: refused, with one stable code (`test_appendix_cases`)."""

import random

import pytest
from language.programs import HEAD, SMALL, codes, problems, program
from language.test_appendix_cases import LINES

from structjax.language.parse import parse
from structjax.language.problem import CODES

IN_POLICY = {
    "too large for float32": ("a = 1e38 * obs.speed", "CONST"),
    "folded overflow": ("a = 1e20 * 1e20", "CONST"),
    "division of constants by zero": ("a = 1 / 0", "CONST"),
    "complex constant": ("a = (-8) ** 0.5", "CONST"),
    "imaginary": ("a = 2j", "CONST"),
    "none": ("a = None", "CONST"),
    "10,000 signs": ("a = " + "-" * 10_000 + "1", "TOO_DEEP"),
    "comprehension": ("a = sum([x for x in obs.tiles.x])", "NODE"),
    "list": ("a = mean([1, 2])", "NODE"),
    "tuple": ("a, b = 1, 2", "NODE"),
    "floor division": ("a = obs.speed // 2", "NODE"),
    "modulo": ("a = obs.speed % 2", "NODE"),
    "bitwise and": ("a = (w > 0) & (w < 1)", "NODE"),
    "invert": ("a = ~w", "NODE"),
    "identity": ("a = 1 if w is obs.speed else 2", "NODE"),
    "with": ("with w:\n    a = 1", "NODE"),
    "delete": ("a = 1\ndel a", "NODE"),
    "in place": ("v = obs.tiles.x\nv[0] = 1\na = v[1]", "NODE"),
    "nested function": ("def f(x):\n    return x\na = 1", "NODE"),
    "lone expression": ("a = 1\nobs.speed", "NODE"),
    "two targets": ("a = b = 1", "NODE"),
    "import inside": ("import os\na = 1", "IMPORT"),
    "previous without start": ("a = previous(a)", "PREVIOUS"),
    "endless range": ("a = 0\nfor i in range(1e30):\n    a = a + 1", "LOOP"),
    "empty range": ("a = 0\nfor i in range(0):\n    a = a + 1", "LOOP"),
    "zero step": ("a = 0\nfor i in range(0, 4, 0):\n    a = a + 1", "LOOP"),
    "data range": ("a = 0\nfor i in range(obs.speed):\n    a = a + 1", "LOOP"),
    "loop over a field": ("a = 0\nfor obs.speed in range(3):\n    a = a + 1", "LOOP"),
    "loop over elements": (
        "v = obs.tiles.x\na = 0\nfor v[0] in range(3):\n    a = a + 1",
        "LOOP",
    ),
    "large exponent": ("a = obs.speed ** 5", "POW"),
    "recursion": ("a = policy(obs)", "RECURSION"),
    "random": ("a = random()", "CALL"),
    "int": ("a = int(obs.speed)", "CALL"),
    "round": ("a = round(obs.speed)", "CALL"),
    "print": ("a = 1\nprint(a)", "CALL"),
    "weight inside": ("a = weight(1.0)", "CALL"),
    "head inside": ("a = normal(1.0)", "CALL"),
    "keyword": ("a = clip(obs.speed, min=0, max=1)", "ARITY"),
    "axis": ("a = mean(obs.tiles.x, axis=0)", "ARITY"),
    "too few": ("a = clip(obs.speed)", "ARITY"),
    "star": ("a = max(*obs.tiles.x)", "NODE"),
    "33 arguments": ("a = max(" + ", ".join(["w"] * 33) + ")", "ARITY"),
    "shadow operator": ("clip = 1\na = 1", "SHADOW"),
    "shadow weight": ("w = 1\na = 1", "SHADOW"),
    "augmented outside": ("a = 1\na += 2", "REASSIGNED"),
    "before assignment": ("b = a\na = 1", "NAME"),
    "unknown name": ("a = nothing", "NAME"),
    "operator as value": ("a = clip", "NAME"),
    "loop variable later": ("a = 0\nfor i in range(2):\n    a += i\nb = i", "NAME"),
    "shared column": ("a = 1\nx_0 = w\nx = obs.tiles.x", "NAME"),
    "one branch": ("if obs.speed > 0:\n    a = 1\nelse:\n    b = 2", "BRANCH"),
    "number as truth": ("a = 1 if obs.speed else 2", "TYPE"),
    "not number": ("a = not obs.speed", "TYPE"),
    "number in and": ("a = obs.speed and w > 0", "TYPE"),
    "number in where": ("a = where(obs.speed, 1, 2)", "TYPE"),
    "unequal vectors": ("a = sum(obs.tiles.x + obs.quat)", "SHAPE"),
    "mean of a scalar": ("a = mean(obs.speed)", "SHAPE"),
    "min of a scalar": ("a = min(obs.speed)", "SHAPE"),
    "stack of vectors": ("a = sum(stack(obs.quat, w))", "SHAPE"),
    "index of a scalar": ("a = obs.speed[0]", "SHAPE"),
    "doubled 11 times": (
        "v = concat(obs.quat, obs.quat)\nfor i in range(10):\n    v = concat(v, v)\n"
        "a = v[0]",
        "SHAPE",
    ),
    "beyond the end": ("a = obs.tiles.x[3]", "INDEX"),
    "before the start": ("a = obs.tiles.x[-4]", "INDEX"),
    "slice beyond": ("a = sum(obs.tiles.x[0:9])", "INDEX"),
    "empty slice": ("a = sum(obs.tiles.x[2:2])", "INDEX"),
    "stepped slice": ("a = sum(obs.tiles.x[::2])", "INDEX"),
    "data index": ("a = obs.tiles.x[obs.speed]", "INDEX"),
    "fractional index": ("a = obs.tiles.x[0.5]", "INDEX"),
    "text index": ("a = obs.tiles.x['a']", "INDEX"),
    "obs by position": ("a = obs[41]", "FIELD"),
    "obs by text": ("a = obs['speed']", "FIELD"),
    "unknown field": ("a = obs.sped", "FIELD"),
    "group": ("a = mean(obs.tiles)", "FIELD"),
    "whole obs": ("a = mean(obs)", "FIELD"),
    "part of a field": ("a = obs.speed.x", "ATTR"),
    "greek": ("\u03b8 = 1\na = 1", "NON_ASCII"),
    "smart quote": ("a = w(\u201cw\u201d)", "NON_ASCII"),
    "zero width": ("a\u200b = 1", "NON_ASCII"),
    "nul": ("a = 1\0", "NON_ASCII"),
    "surrogate in a comment": ("a = 1  # \ud800", "NON_ASCII"),
    "python 2": ("print 'x'", "SYNTAX"),
}


@pytest.mark.parametrize("case", IN_POLICY)
def test_fault_in_policy(case):
    text, code = IN_POLICY[case]
    assert code in codes(program(text))


WHOLE = {
    "empty": ("", "EMPTY"),
    "blank": (" \n\t", "EMPTY"),
    "3,000 lines": ("x = 1\n" * 3_000, "TOO_LONG"),
    "70 kB": ("# " + "x" * 70_000, "TOO_LONG"),
    "import": ("import os\n" + program("a = 1"), "IMPORT"),
    "from import": ("from jax import numpy as jnp\n" + program("a = 1"), "IMPORT"),
    "other name": ("def controller(obs):\n    return 1\n", "NO_ENTRY"),
    "no function": ("x = weight(1.0)\n", "NO_ENTRY"),
    "placeholder": ("def policy(obs):\n    ...\n", "CONST"),
    "pass": ("def policy(obs):\n    pass\n", "NO_RETURN"),
    "tab mix": ("def policy(obs):\n\tx = 1\n        return x\n", "SYNTAX"),
    "indented": ("    " + program("a = 1"), "SYNTAX"),
    "diff markers": ("<<<<<<< SEARCH\n" + program("a = 1"), "SYNTAX"),
    "escaped newlines": (r"def policy(obs):\n    return 1\n", "SYNTAX"),
    "self": ("def policy(self, obs):\n    return 1\n", "SIGNATURE"),
    "default": ("def policy(obs, k=1):\n    return 1\n", "SIGNATURE"),
    "star parameter": ("def policy(*obs):\n    return 1\n", "SIGNATURE"),
    "annotation": ("def policy(obs: float):\n    return 1\n", "SIGNATURE"),
    "no-break space": ("def policy(obs):\n\xa0   return 1\n", "NON_ASCII"),
    "own clip": (program("a = 1", module="def clip(x):\n    return x\n"), "SHADOW"),
    "class": (program("a = 1", module="class A:\n    pass\n"), "NODE"),
    "async": ("async def policy(obs):\n    return 1\n", "NODE"),
    "decorator": ("@jit\n" + program("a = 1").removeprefix(HEAD), "NODE"),
    "call after": (program("a = 1") + "policy(1)\n", "TOPLEVEL"),
    "weight after": (program("a = 1") + "late = weight(1.0)\n", "TOPLEVEL"),
    "main guard": (
        program("a = 1") + "if __name__ == '__main__':\n    policy(1)\n",
        "TOPLEVEL",
    ),
    "weight twice": (program("a = 1", module="w = weight(0.1)\n"), "REASSIGNED"),
    "policy twice": (program("a = 1") + program("a = 1")[len(HEAD) :], "REASSIGNED"),
    "recursive helper": (
        program("a = f(w)", module="def f(x):\n    return f(x)\n"),
        "RECURSION",
    ),
    "helper reads obs": (
        program("a = f(w)", module="def f(x):\n    return x * obs.speed\n"),
        "FIELD",
    ),
    "helper without return": (
        program("a = f(w)", module="def f(x):\n    y = x\n"),
        "NO_RETURN",
    ),
    "helper arity": (
        program("a = f(w, w)", module="def f(x):\n    return x\n"),
        "ARITY",
    ),
    "mutual recursion": (
        program(
            "a = f(w)",
            module="def f(x):\n    return g(x)\ndef g(x):\n    return f(x)\n",
        ),
        "RECURSION",
    ),
    "constant that is no number": (program("a = 1", module="k = w\n"), "WEIGHT"),
    "text constant": (program("a = 1", module="k = 'x'\n"), "CONST"),
}


@pytest.mark.parametrize("case", WHOLE)
def test_fault_of_the_whole(case):
    text, code = WHOLE[case]
    assert code in codes(text)


WEIGHTS = {
    "weight()": "WEIGHT",
    "weight(1, low=2)": "WEIGHT",
    "weight(1, high=0.5)": "WEIGHT",
    "weight(-1, sign='+')": "WEIGHT",
    "weight(1, sign='-')": "WEIGHT",
    "weight(1, low=1, high=1)": "WEIGHT",
    "weight(1, sign='+', high=-1)": "WEIGHT",
    "weight(1, sign=2)": "WEIGHT",
    "weight(1, scale=2)": "WEIGHT",
    "weight(1, None, 0, 2, 3)": "WEIGHT",
    "weight(w)": "WEIGHT",
    "weight(None)": "CONST",
    "weight('x')": "CONST",
    "weight(1e400)": "CONST",
    "weight(1, sign='*')": "CONST",
    "weight([1, 2])": "NODE",
}


@pytest.mark.parametrize("declaration", WEIGHTS)
def test_fault_of_a_weight(declaration):
    text = program("a = 1", module=f"u = {declaration}\n")
    assert WEIGHTS[declaration] in codes(text)


HEADS = {
    "return None": "RETURN",
    "return": "RETURN",
    "return w": "RETURN",
    "return stack(w, w)": "RETURN",
    "return {'steer': w}": "NODE",
    "return action(w, w)": "RETURN",
    "return action(steer=normal(w))": "HEAD",
    "return action(steer=w, gas=normal(w))": "HEAD",
    "return action(steer=normal(w), gas=normal(w), brake=normal(w))": "HEAD",
    "return action(steer=normal(w), steer=normal(w), gas=normal(w))": "HEAD",
    "return action(steer=categorical(w, w), gas=normal(w))": "HEAD",
    "return action(steer=normal(), gas=normal(w))": "HEAD",
    "return action(steer=normal(w, scale=1), gas=normal(w))": "HEAD",
    "return action(steer=normal(w, 1, 2), gas=normal(w))": "HEAD",
    "return action(steer=normal(obs.quat), gas=normal(w))": "SHAPE",
    "return action(steer=normal(w, std=2), gas=normal(w))": "WEIGHT",
    "return action(steer=normal(w, std=0), gas=normal(w))": "WEIGHT",
    "return action(steer=normal(w, std=fixed(0)), gas=normal(w))": "HEAD",
    "return action(steer=normal(w, std=fixed(w)), gas=normal(w))": "HEAD",
    "return action(steer=normal(w, std=fixed()), gas=normal(w))": "ARITY",
    "return action(**w)": "HEAD",
}


@pytest.mark.parametrize("final", HEADS)
def test_fault_of_a_head(final):
    assert HEADS[final] in codes(f"{HEAD}def policy(obs):\n    {final}\n")


def test_own_weight_in_the_place_of_an_implied_std():
    text = "std_steer = weight(0.1)\n" + program("a = 1")
    assert problems(text) == [
        "SHADOW line 5: the head of `steer` needs the name `std_steer` for its own "
        "weight; write `normal(mean, std=std_steer)`, or rename the weight "
        "`std_steer`"
    ]


def test_a_program_that_compiles_to_too_much_is_refused_with_its_size():
    # Nine operators a line, in no order that repeats, and one in the head.
    signs = random.Random(0).choices("+-", k=500)
    lines = [
        f"b{i} = w * w {s} {i} * w {s} {i} * w * w {s} {i} * w * w"
        for i, s in enumerate(signs)
    ]
    parse(program(*lines[:440], "a = 1"), SMALL)
    assert problems(program(*lines, "a = 1")) == [
        "TOO_LONG line 1: the program expands to 4,501 operations; at most 4,000 are "
        "accepted; use operators on vectors"
    ]
    # The same line again and again is a loop.
    parse(
        program(*(f"b{i} = w * obs.speed + {i}" for i in range(1400)), "a = 1"), SMALL
    )


def test_a_program_that_logs_too_much_is_refused_with_its_size():
    wide = ", ".join(["obs.quat"] * 64)
    lines = [f"b{i} = concat({wide})" for i in range(9)]
    assert problems(program(*lines, "a = 1")) == [
        "TOO_LONG line 1: the program logs 2,305 values a step; at most 2,048 are "
        "accepted; long vectors that need no log get names that begin with `_`"
    ]
    unlogged = [line.replace("b", "_b", 1) for line in lines]
    parse(program(*unlogged, "a = 1"), SMALL)


def test_every_code_is_listed_and_every_listed_error_is_tested():
    tested = {code for table in (IN_POLICY, WHOLE) for _, code in table.values()}
    tested |= {*WEIGHTS.values(), *HEADS.values()}
    tested |= {code for _, found in LINES.values() for code in found.split()} - {"ok"}
    errors = {code for code, text in CODES.items() if not text.startswith("warning")}
    assert tested == errors
