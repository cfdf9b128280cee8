"""What a refusal says: stable messages, all at once, each fault once."""

import pytest
from language.programs import HEAD, RETURN, SMALL, codes, problems, program

from structjax.language.parse import StructureError, parse
from structjax.language.problem import MAX_PROBLEMS


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
