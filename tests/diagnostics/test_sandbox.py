"""What the sandbox returns for code of every kind."""

from pathlib import Path

import pytest

from structjax.diagnostics.diagnose import diagnose
from structjax.diagnostics.finding import clean_text
from structjax.diagnostics.sandbox import Sandbox, sandbox_available
from structjax.errors import StructjaxError

AVAILABLE, REASON = sandbox_available()
pytestmark = pytest.mark.skipif(not AVAILABLE, reason=REASON)


def test_one_finding_per_function_in_order_of_definition(shared: Sandbox) -> None:
    code = '''
print("top", df.shape)

def helper(df):
    raise AssertionError

def test_total(table):
    """The sum."""
    return table.x.sum()

def check_groups(table):
    print(table.groupby("episode").x.mean())

def check_nothing():
    print("no argument")

def check_both(df):
    print("printed")
    return {"mean": float(df.x.mean())}
'''
    findings = shared.run(code)
    groups = "episode\n0    1.5\n1    6.0\nName: x, dtype: float64"
    assert [(f.name, f.status, f.text) for f in findings] == [
        ("module", "ok", "top (3, 2)"),
        ("test_total", "ok", "9.0"),
        ("check_groups", "ok", groups),
        ("check_nothing", "ok", "no argument"),
        ("check_both", "ok", "printed\n{'mean': 3.0}"),
    ]
    assert all(0 < f.seconds < 10 for f in findings)


def test_functions_do_not_see_each_others_changes(shared: Sandbox) -> None:
    code = """
count = 0

def check_first(table):
    global count
    count += 1
    table.loc[:, "x"] = 0.0
    df.drop(df.index, inplace=True)
    return count

def check_second(table):
    global count
    count += 1
    return count, float(table.x.sum()), len(df)
"""
    assert [f.text for f in shared.run(code)[1:]] == ["1", "(1, 9.0, 3)"]


def test_changes_of_the_top_level_to_df_do_not_reach_the_argument(
    shared: Sandbox,
) -> None:
    code = """
df["x"] = 0.0

def check_argument(table):
    return float(table.x.sum()), float(df.x.sum())
"""
    assert shared.run(code)[1].text == "(9.0, 0.0)"


def test_traceback_shows_the_codes_own_lines(shared: Sandbox) -> None:
    code = """
def inner(table):
    return table["speed"]

def check_speed(table):
    print("before")
    return inner(table)
"""
    assert shared.run(code)[1].status == "exception"
    assert shared.run(code)[1].text == (
        "before\n"
        "line 7, in check_speed\n    return inner(table)\n"
        'line 3, in inner\n    return table["speed"]\n'
        "KeyError: 'speed'"
    )


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("def check_a(df:\n    pass", "line 1: SyntaxError: '(' was never closed"),
        ("x = 1\n  y = 2", "line 2: IndentationError: unexpected indent"),
        ("x = '\0'", "null bytes"),
        ("x = '\ud800'\nraise ValueError(x)", "ValueError: ?"),
        ("(" * 5000 + ")" * 5000, "too many nested parentheses"),
        ("x = " + "-" * 90_000 + "1", ""),
        ("x = " + "+".join("1" * 90_000), ""),
        ("#" * 200_001, "200001 bytes of code; accepted: at most 200000"),
        ("raise Exception('x' * 10**6)", "... (1000011 characters)"),
        (
            "class E(Exception):\n    def __str__(self): 1/0\nraise E",
            "E: <exception str",
        ),
        ("import sys\nsys.stdout.close()\nraise KeyError('k')", "KeyError: 'k'"),
        ("import sys\nsys.stdout = None\nraise KeyError('k')", "KeyError: 'k'"),
    ],
)
def test_bad_code_is_the_modules_finding(code: str, text: str, shared: Sandbox) -> None:
    (finding,) = shared.run(code, static_check=False)
    assert finding.name == "module"
    assert finding.status in ("exception", "memory", "killed")
    assert text in finding.text
    assert len(finding.text) < 3000


def test_functions_are_not_run_after_a_failed_top_level(shared: Sandbox) -> None:
    findings = shared.run("def check_a(df):\n    return 1\nraise ValueError('no')")
    assert [f.status for f in findings] == ["exception", "exception"]
    assert findings[1].text == ("not run: the top level ended with status exception")


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("import os", "line 1: import of `os`; accepted: collections, "),
        ("x = 1\nfrom os import path", "line 2: import of `os`"),
        ("import scipy.stats, subprocess", "line 1: import of `subprocess`"),
        ("from . import x", "line 1: import of `.`"),
        ("def help():\n    return open('x')", "line 2: `open` is not available"),
        ("f = eval", "line 1: `eval` is not available"),
        ("().__class__", "line 1: `__class__` is not available"),
        ("__builtins__", "line 1: `__builtins__` is not available"),
    ],
)
def test_static_check_names_the_line_and_what_is_accepted(
    code: str, problem: str, shared: Sandbox
) -> None:
    finding = shared.run(code)[0]
    assert finding.status == "exception"
    assert finding.text.startswith(problem)
    assert "accepted: " in finding.text


def test_static_check_accepts_what_analysis_needs(shared: Sandbox) -> None:
    code = """
from __future__ import annotations
import collections, functools, itertools, json, math, re, statistics, typing, warnings
from dataclasses import dataclass
import numpy as np
import pandas as pd
from scipy import stats
from sklearn.linear_model import LinearRegression
import statsmodels.api as sm

@dataclass
class Row:
    x: float

def check_fit(df):
    # x = 1, 2, 6 over episode = 0, 0, 1: means 1.5 and 6, so the slope is 4.5.
    slope = LinearRegression().fit(df[["episode"]], df.x).coef_[0]
    other = sm.OLS(df.x, sm.add_constant(df.episode)).fit().params["episode"]
    third = stats.linregress(df.episode, df.x).slope
    return [round(float(v), 6) for v in (slope, other, third)], Row(1.0)

if __name__ == "__main__":
    check_fit(df)
"""
    findings = shared.run(code)
    assert [f.status for f in findings] == ["ok", "ok"]
    assert findings[1].text == "([4.5, 4.5, 4.5], Row(x=1.0))"


def test_long_output_keeps_head_and_tail(shared: Sandbox) -> None:
    (finding,) = shared.run("print('a' * 16_000 + 'b' * 7_000 + 'c' * 3_999)")
    # 16,000 bytes of head; the tail of 4,000 ends with the newline of print.
    assert finding.status == "output_limit"
    assert finding.text == (
        "a" * 16_000 + "\n... 7000 bytes dropped ...\n" + "c" * 3_999
    )


def test_output_just_below_the_cap_is_whole(shared: Sandbox) -> None:
    (finding,) = shared.run("print('a' * 19_999)")
    assert (finding.status, finding.text) == ("ok", "a" * 19_999)


def test_text_carries_no_control_characters(shared: Sandbox) -> None:
    code = r"""
import sys
print("\x1b[31mred\x1b[0m \x1b]0;title\x07\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\")
print("a\rb\x00\x08\x7f\x9b\u202e\u200b\ufeffc\td \u00e9")
sys.stdout.buffer.write(b"\xff\xfe\n")
print(object())
"""
    (finding,) = shared.run(code, static_check=False)
    assert finding.text == (
        "red link\na\nbc\td \u00e9\n\ufffd\ufffd\n<object object at 0x...>"
    )


def test_clean_text_of_nested_escapes_leaves_no_escape() -> None:
    assert clean_text("\x1b\x1b[31m[31mx") == "[31mx"
    assert clean_text("plain\n\ttext") == "plain\n\ttext"


def test_total_time_is_shared(shared: Sandbox) -> None:
    code = "".join(f"def check_{i}(df):\n    while True: pass\n" for i in range(3))
    findings = shared.run(code, wall=0.4, total=0.6)
    assert [f.status for f in findings] == ["ok", *["timeout"] * 3]
    assert findings[3].text.startswith("not run: the 0.6 s")


def test_more_functions_than_accepted_are_named(shared: Sandbox) -> None:
    code = "".join(f"def check_{i}(df): return {i}\n" for i in range(66))
    findings = shared.run(code, static_check=False)
    assert [f.status for f in findings[1:]] == ["ok"] * 64 + ["exception"] * 2
    assert findings[-1].text == "not run: 66 functions; accepted: at most 64"


@pytest.mark.parametrize("limits", [{"wall": 0}, {"memory_mb": -1}, {"total": 0.0}])
def test_limits_are_positive(limits: dict[str, float], shared: Sandbox) -> None:
    with pytest.raises(StructjaxError, match="accepted: positive numbers"):
        shared.run("", **limits)  # type: ignore[arg-type]


def test_diagnose_returns_findings_and_the_sandbox(table: Path) -> None:
    result = diagnose("def check_rows(df):\n    return len(df)", table)
    assert [(f["name"], f["status"], f["text"]) for f in result["findings"]] == [
        ("module", "ok", ""),
        ("check_rows", "ok", "3"),
    ]
    assert set(result["findings"][0]) == {"name", "status", "text", "seconds"}
    assert result["sandbox"]["level"] == "strict"


def test_what_is_refused_in_one_check_does_not_stop_the_others(shared):
    code = "def check_a(df):\n    import os\ndef check_b(df):\n    print('ran')\n"
    module, first, second = shared.run(code)
    assert module.status == "ok"
    assert first.status == "exception"
    assert "line 2: import of `os`" in first.text
    assert (second.status, second.text.strip()) == ("ok", "ran")
