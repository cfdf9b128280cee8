"""Every kind of fault that models write: refused, with one stable code."""

import random

import pytest
from language.programs import HEAD, RETURN, SMALL, codes, problems, program

from structjax.language.parse import StructureError, parse
from structjax.language.problem import CODES, MAX_PROBLEMS

LONG_ELIF = "if obs.speed > 0:\n    a = 1\n" + "elif obs.speed > 0:\n    a = 1\n" * 900

IN_POLICY = {
    "giant hex": ("a = 0x" + "f" * 50_000, "CONST"),
    "infinite": ("a = 1e400", "CONST"),
    "too large for float32": ("a = 1e38 * obs.speed", "CONST"),
    "folded overflow": ("a = 1e20 * 1e20", "CONST"),
    "division of constants by zero": ("a = 1 / 0", "CONST"),
    "complex constant": ("a = (-8) ** 0.5", "CONST"),
    "imaginary": ("a = 2j", "CONST"),
    "bytes": ("a = b'x'", "CONST"),
    "text product": ("a = 'a' * 1000000", "CONST"),
    "none": ("a = None", "CONST"),
    "10,000 brackets": ("a = " + "(" * 10_000 + "1" + ")" * 10_000, "TOO_DEEP"),
    "10,000 nots": ("a = " + "not " * 10_000 + "1", "TOO_DEEP"),
    "10,000 signs": ("a = " + "-" * 10_000 + "1", "TOO_DEEP"),
    "sum of 3,000": ("a = " + "+".join("1" * 3_000), "TOO_DEEP"),
    "power of 9,000": ("a = " + "**".join("2" * 9_000), "TOO_DEEP"),
    "900 elifs": (LONG_ELIF + "else:\n    a = 1", "TOO_DEEP"),
    "class walk": ("a = ().__class__.__bases__[0].__subclasses__()", "DUNDER"),
    "getattr": ("a = getattr(obs, w)", "CALL"),
    "open": ("a = open(w)", "CALL"),
    "method": ("a = obs.tiles.x.mean()", "ATTR"),
    "f-string": ("a = f'{obs}'", "NODE"),
    "lambda": ("a = (lambda: 1)()", "NODE"),
    "walrus": ("a = (b := obs.speed)", "NODE"),
    "generator": ("a = sum(x for x in obs.tiles.x)", "NODE"),
    "comprehension": ("a = sum([x for x in obs.tiles.x])", "NODE"),
    "list": ("a = mean([1, 2])", "NODE"),
    "tuple": ("a, b = 1, 2", "NODE"),
    "while": ("while True:\n    pass\na = 1", "NODE"),
    "shift": ("a = 1 << 30", "NODE"),
    "xor": ("a = obs.speed ^ 2", "NODE"),
    "matmul": ("a = obs.tiles.x @ obs.tiles.y", "NODE"),
    "floor division": ("a = obs.speed // 2", "NODE"),
    "modulo": ("a = obs.speed % 2", "NODE"),
    "bitwise and": ("a = (w > 0) & (w < 1)", "NODE"),
    "invert": ("a = ~w", "NODE"),
    "identity": ("a = 1 if w is obs.speed else 2", "NODE"),
    "global": ("global w\na = 1", "NODE"),
    "try": ("try:\n    a = 1\nexcept:\n    a = 2", "NODE"),
    "match": ("match w:\n    case 1:\n        a = 1", "NODE"),
    "assert": ("assert obs.speed > 0\na = 1", "NODE"),
    "raise": ("raise ValueError", "NODE"),
    "yield": ("yield 1", "NODE"),
    "with": ("with w:\n    a = 1", "NODE"),
    "delete": ("a = 1\ndel a", "NODE"),
    "in place": ("v = obs.tiles.x\nv[0] = 1\na = v[1]", "NODE"),
    "nested function": ("def f(x):\n    return x\na = 1", "NODE"),
    "lone expression": ("a = 1\nobs.speed", "NODE"),
    "two targets": ("a = b = 1", "NODE"),
    "import inside": ("import os\na = 1", "IMPORT"),
    "previous without start": ("a = previous(a)", "PREVIOUS"),
    "long range": ("a = 0\nfor i in range(1000000):\n    a = a + 1", "LOOP"),
    "endless range": ("a = 0\nfor i in range(1e30):\n    a = a + 1", "LOOP"),
    "empty range": ("a = 0\nfor i in range(0):\n    a = a + 1", "LOOP"),
    "zero step": ("a = 0\nfor i in range(0, 4, 0):\n    a = a + 1", "LOOP"),
    "data range": ("a = 0\nfor i in range(obs.speed):\n    a = a + 1", "LOOP"),
    "loop over a field": ("a = 0\nfor obs.speed in range(3):\n    a = a + 1", "LOOP"),
    "loop over elements": (
        "v = obs.tiles.x\na = 0\nfor v[0] in range(3):\n    a = a + 1",
        "LOOP",
    ),
    "over a vector": ("a = 0\nfor x in obs.tiles.x:\n    a = a + x", "LOOP"),
    "unrolled 3,600": (
        "a = 0\nfor i in range(60):\n    for j in range(60):\n        a = a + 1",
        "LOOP",
    ),
    "data exponent": ("a = obs.speed ** obs.yaw", "POW"),
    "large exponent": ("a = obs.speed ** 5", "POW"),
    "recursion": ("a = policy(obs)", "RECURSION"),
    "early return": ("if obs.speed > 0:\n    return w\na = 1", "RETURN"),
    "undefined function": ("a = softmin(obs.speed)", "CALL"),
    "noise": ("a = np.random.normal()", "ATTR"),
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
    "shadow obs": ("obs = 1\na = obs", "SHADOW"),
    "shadow operator": ("clip = 1\na = 1", "SHADOW"),
    "shadow weight": ("w = 1\na = 1", "SHADOW"),
    "second assignment": ("a = 1\na = 2", "REASSIGNED"),
    "augmented outside": ("a = 1\na += 2", "REASSIGNED"),
    "before assignment": ("b = a\na = 1", "NAME"),
    "cycle": ("a = b\nb = a", "NAME"),
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
    "cyrillic": ("a = \u043ebs.speed", "NON_ASCII"),
    "greek": ("\u03b8 = 1\na = 1", "NON_ASCII"),
    "smart quote": ("a = w(\u201cw\u201d)", "NON_ASCII"),
    "zero width": ("a\u200b = 1", "NON_ASCII"),
    "minus sign": ("a = 1 \u2212 w", "NON_ASCII"),
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
    # Three operators a line, in no order that repeats, and one in the head.
    signs = random.Random(0).choices("+-", k=1990)
    lines = [f"b{i} = w * w {s} {i} * w" for i, s in enumerate(signs)]
    parse(program(*lines[:1300], "a = 1"), SMALL)
    assert problems(program(*lines, "a = 1")) == [
        "TOO_LONG line 1: the program expands to 5,971 operations; at most 4,000 are "
        "accepted; use operators on vectors"
    ]
    # The same line again and again is a loop.
    parse(
        program(*(f"b{i} = w * obs.speed + {i}" for i in range(1990)), "a = 1"), SMALL
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
    errors = {code for code, text in CODES.items() if not text.startswith("warning")}
    assert tested == errors


def test_names_of_refused_statements_in_branches_are_silent_later():
    text = "if obs.speed > 0:\n    y: float = 1\nelse:\n    y: float = 2\na = y"
    assert set(codes(program(text))) == {"NODE"}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "a = obs.tiles.x[3]",
            "INDEX line 3: `obs.tiles.x[3]` is out of range; `obs.tiles.x` has 3 "
            "elements, 0 to 2 (or -3 to -1)",
        ),
        (
            "a = obs.sped",
            "FIELD line 3: `obs.sped` is not an observation field; did you mean "
            "`obs.speed`? the fields are obs.tiles.x[3], obs.tiles.y[3], obs.speed, "
            "obs.yaw, obs.quat[4]",
        ),
        (
            "a = mean(obs.tiles)",
            "FIELD line 3: `obs.tiles` is a group of fields; its members are "
            "obs.tiles.x, obs.tiles.y",
        ),
        (
            'a = obs["speed"]',
            "FIELD line 3: `obs['speed']` is not accepted; write `obs.speed`",
        ),
        (
            "a = obs[0]",
            "FIELD line 3: `obs[0]` is not accepted; fields are read by name: "
            "obs.tiles.x, obs.tiles.y, obs.speed, obs.yaw, obs.quat",
        ),
        (
            "a = 1 if obs.yaw else 0",
            "TYPE line 3: `obs.yaw` is a number where a truth value is needed; write "
            "a comparison such as `obs.yaw > 0`",
        ),
        (
            "a = obs.yaw ^ 2",
            "NODE line 3: `^` is not part of the language; a power is `x ** 2`",
        ),
        (
            "a = 1\na = 2",
            "REASSIGNED line 4: `a` is already assigned in line 3; every name is "
            "assigned once; choose another name",
        ),
        (
            "a = obs.tiles.x.mean()",
            "ATTR line 3: `obs.tiles.x.mean()` is not accepted; write "
            "`mean(obs.tiles.x)`",
        ),
        (
            "a = random()",
            "CALL line 3: `random` is not a function of the language; noise belongs "
            "to the distribution of the action: `normal(mean, std=...)`",
        ),
        (
            "a = 1 \u2212 w",
            "NON_ASCII line 3: U+2212 (MINUS SIGN) is not accepted; write -",
        ),
        (
            "a = sum(obs.tiles.x + obs.quat)",
            "SHAPE line 3: `obs.tiles.x + obs.quat`: vectors of 3 and 4 do not "
            "combine; written `a + b`: sum of two",
        ),
        (
            "a = sum(obs.quat + obs.tiles.x)",
            "SHAPE line 3: `obs.quat + obs.tiles.x`: vectors of 4 and 3 do not "
            "combine; written `a + b`: sum of two",
        ),
        (
            "a = 0\nfor x in obs.tiles.x:\n    a = a + x",
            "LOOP line 4: `for ... in obs.tiles.x` is not a static loop; write `for i "
            "in range(n)` with a constant n of 1 to 64",
        ),
        (
            "a = 0\nfor obs.speed in range(3):\n    a = a + 1",
            "LOOP line 4: `obs.speed` is no name for a loop variable; write `for i "
            "in range(n)` with a constant n of 1 to 64",
        ),
        (
            "if obs.yaw > 0:\n    a = 1",
            "BRANCH line 3: `a` is assigned in only one branch; assign it in the "
            "other branch too, or before the `if`",
        ),
        (
            "a = wieght * obs.yaw",
            "NAME line 3: `wieght` is not defined; names are weights and earlier "
            "assignments",
        ),
    ],
)
def test_message(line, message):
    assert problems(program(line)) == [message]


def test_missing_action_shows_the_whole_return():
    text = f"{HEAD}def policy(obs):\n    return action(steer=normal(w))\n"
    assert problems(text) == [
        "HEAD line 3: the return lacks `gas`; write `return action("
        "steer=normal(mean), gas=normal(mean))`"
    ]


def test_all_problems_come_at_once_by_line():
    text = program("a = obs.sped", "b = mean(obs.speed)", "c = a + unknown")
    assert codes(text) == ["FIELD", "SHAPE", "NAME"]


def test_at_most_twenty_problems():
    text = program(*(f"x{i} = unknown{i}" for i in range(30)), "a = 1")
    with pytest.raises(StructureError) as caught:
        parse(text, SMALL)
    assert len(caught.value.problems) == MAX_PROBLEMS
    assert [p.line for p in caught.value.problems] == list(range(3, 23))
    assert str(caught.value).endswith("and 10 more problems")


def test_unrolled_faults_are_reported_once():
    text = program("a = 0\nfor i in range(5):\n    a = a + unknown")
    assert codes(text) == ["NAME"]


def test_helpers_that_explode_are_stopped():
    # f doubles its argument's uses; eight levels of four calls each: 4 ** 8 bodies.
    levels = "def f0(x):\n    return x * x\n"
    for i in range(1, 9):
        calls = " + ".join([f"f{i - 1}(x)"] * 4)
        levels += f"def f{i}(x):\n    return {calls}\n"
    assert codes(program("a = f8(w)", module=levels)) == ["TOO_LONG"]


def test_the_return_line_counts_in_the_message():
    text = HEAD + "def policy(obs):\n    a = 1\n" + RETURN + "    b = 2\n"
    assert problems(text) == [
        "RETURN line 5: statements after the return are never reached; return last"
    ]
