"""Reading a program takes work in proportion to its text, whatever is written."""

import ast
import gc

import pytest
from language.programs import RETURN, SMALL, program

from structjax.language import documentation, names, scope, syntax
from structjax.language.parse import StructureError, parse
from structjax.language.problem import MAX_PROBLEMS
from structjax.tasks.car_racing.schema import CAR_RACING_SCHEMA


def counted(monkeypatch, module, name):
    """Counts the calls of a function: a list that grows."""
    real, calls = getattr(module, name), []

    def counting(*arguments, **options):
        calls.append(1)
        return real(*arguments, **options)

    monkeypatch.setattr(module, name, counting)
    return calls


def read(text):
    try:
        parse(text, CAR_RACING_SCHEMA)
    except StructureError as error:
        return error.problems
    return ()


def test_names_are_suggested_for_the_problems_that_are_shown(monkeypatch):
    compared = counted(monkeypatch, names.difflib, "get_close_matches")
    known = "\n".join(f"a_long_name_{i} = obs.speed" for i in range(700))
    wrong = "\n".join(f"b{i} = a_lnog_name_{i}" for i in range(700))
    problems = read(program(f"{known}\n{wrong}"))
    assert len(compared) == MAX_PROBLEMS
    assert all("did you mean `a_long_name_" in p.hint for p in problems)


def test_a_suggestion_is_sought_among_a_bounded_number_of_names():
    known = {f"weight_of_part_{i}": None for i in range(5000)}
    assert names.did_you_mean("weight_of_prat_77", known) == (
        "did you mean `weight_of_part_77`?"
    )
    assert names.did_you_mean("entirely_other", known) == ""


BIG_CALL = "foo(w).bar(" + ",".join("w" * 400) + ")"
LOOPS = {
    "method": f"a = w\nfor i in range(64):\n    a = {BIG_CALL}",
    "refused": f"a = w\nfor i in range(64):\n    a = [w].bar({','.join('w' * 400)})",
    "tuple": "a = w\nfor i in range(64):\n    b, c = " + ",".join("w" * 400),
    "while": "a = w\nfor i in range(64):\n    while w:\n        a = "
    + "+".join("w" * 90),
}


@pytest.mark.parametrize("name", LOOPS)
def test_loops_come_back_to_what_is_known_of_their_nodes(monkeypatch, name):
    walks = counted(monkeypatch, scope.ast, "walk")
    texts = counted(monkeypatch, syntax, "_excerpt")
    assert read(program(LOOPS[name]))
    # 64 turns, and a handful of nodes that are walked or shown.
    assert len(walks) + len(texts) < 16


def test_a_helper_is_walked_once_however_often_it_is_called(monkeypatch):
    walks = counted(monkeypatch, scope, "first_assignments")
    dead = "\n".join(f"    x{i} = a" for i in range(1500))
    helper = f"def f(a):\n    b = a + unknown\n    return a\n{dead}\n"
    calls = "a = 0\nfor i in range(64):\n    a = a + f(w) + f(w) + f(w)"
    assert "NAME" in [p.code for p in read(program(calls, module=helper))]
    assert len(walks) == 1


def test_comments_above_a_line_of_many_statements_are_read_once(monkeypatch):
    comments = counted(monkeypatch, documentation.Comments, "_above")
    above = "\n".join(["    # why"] * 1500)
    line = "    " + "; ".join(f"a{i} = w" for i in range(1500))
    text = f"w = weight(1)\n\n\ndef policy(obs):\n{above}\n{line}\n{RETURN}"
    tree = ast.parse(text)
    names_ = frozenset(f"a{i}" for i in range(1500))
    docs = documentation.documentation(tree, text, names_)
    assert docs["a0"] == docs["a1499"] == " ".join(["why"] * 1500)
    assert len({id(text) for text in docs.values()}) == 1
    assert len(comments) == 1500


def test_statements_without_an_effect_count_too():
    branch = "\n".join(["        if [w]:", "            pass"] * 400)
    text = program(f"a = w\nfor i in range(64):\n    if w > 0:\n{branch}")
    assert "TOO_LONG" in [problem.code for problem in scope_problems(text)]


def scope_problems(text):
    from structjax.language.problem import Problems

    found = []
    real = Problems.error

    def noting(self, code, line, message, hint=""):
        real(self, code, line, message, hint)
        found.extend(p for p in self.found if p.code == code)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Problems, "error", noting)
        read(text)
    return found


@pytest.mark.parametrize("on", [True, False])
def test_the_garbage_collector_is_left_as_it_was(on):
    before = gc.isenabled()
    try:
        gc.enable() if on else gc.disable()
        read("w = weight(1)\n")
        assert gc.isenabled() == on
        parse(program("a = 1"), SMALL)
        assert gc.isenabled() == on
    finally:
        gc.enable() if before else gc.disable()
