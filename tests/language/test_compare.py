"""Differences between programs, each derived by hand."""

import re

import pytest
from language.programs import FIXTURES, SMALL

from structjax.language.compare import (
    Difference,
    Entry,
    HeadChanged,
    Reconstrained,
    Renamed,
    Restarted,
    Rewired,
    difference,
)
from structjax.language.compare_views import difference_html, difference_text
from structjax.language.parse import parse
from structjax.language.structure import (
    Call,
    Head,
    Latent,
    Number,
    Observation,
    Parameter,
    Previous,
    Structure,
    Variable,
    Weight,
)
from structjax.tasks.car_racing.schema import CAR_RACING_SCHEMA as CAR

OLD = """
gain = weight(0.5, sign="+")
damp = weight(0.25)

def policy(obs):
    bend = mean(obs.tiles.x)
    wish = gain * bend
    steer = clip(wish - damp * obs.yaw, -1, 1)
    return action(steer=normal(steer, std=0.1), gas=normal(0.5 - bend))
"""


def changed(*edits, old=OLD):
    """The difference that (pattern, replacement) edits of a program make."""
    text = old
    for pattern, replacement in edits:
        text, count = re.subn(pattern, replacement, text)
        assert count
    return difference(parse(old, SMALL).structure, parse(text, SMALL).structure)


def test_no_change():
    found = changed((r"\n    wish", "\n\n    # a remark\n    wish"))
    assert found == Difference()
    assert not found
    assert difference_text(found) == "no change\n"
    assert "no change" in difference_html(found)


def test_the_order_of_statements_is_no_change():
    text = """
    wide = obs.speed + 1
    bend = obs.yaw * 2
    return action(steer=normal(bend), gas=normal(wide))
"""
    old = f"def policy(obs):{text}"
    swap = (r"(    wide.*\n)(    bend.*\n)", r"\2\1")
    assert changed(swap, old=old) == Difference()


def test_a_renamed_latent_is_not_added_and_removed():
    found = changed((r"\bbend\b", "curve"), (r"\bsteer\b(?!=)", "turn"))
    assert found == Difference(
        renamed=(Renamed("latent", "bend", "curve"), Renamed("latent", "steer", "turn"))
    )


def test_a_renamed_weight():
    found = changed((r"\bgain\b", "strength"))
    assert found == Difference(renamed=(Renamed("weight", "gain", "strength"),))


def test_a_weight_of_other_bounds_in_the_same_place_is_another_weight():
    found = changed(
        (r'gain = weight\(0.5, sign="\+"\)', "k = weight(0.5)"), ("gain", "k")
    )
    assert found == Difference(
        added=(Entry("weight", "k", "weight(0.5)"),),
        removed=(Entry("weight", "gain", "weight(0.5, low=0)"),),
        rewired=(Rewired("wish", "gain * bend", "k * bend"),),
    )


def test_names_that_are_exchanged():
    old = """
def policy(obs):
    a = obs.speed + 1
    b = obs.yaw * 2
    return action(steer=normal(a), gas=normal(b))
"""
    new = """
def policy(obs):
    b = obs.speed + 1
    a = obs.yaw * 2
    return action(steer=normal(b), gas=normal(a))
"""
    found = difference(parse(old, SMALL).structure, parse(new, SMALL).structure)
    assert found == Difference(
        renamed=(Renamed("latent", "a", "b"), Renamed("latent", "b", "a"))
    )


def test_a_rewired_latent_is_named_once_and_not_what_depends_on_it():
    found = changed((r"gain \* bend", "gain * bend ** 2"))
    assert found == Difference(
        rewired=(Rewired("wish", "gain * bend", "gain * bend ** 2"),)
    )


def test_an_inserted_step():
    found = changed(
        (r"(    wish = .*\n)", r"\1    soft = tanh(wish)\n"),
        ("clip\\(wish", "clip(soft"),
    )
    assert found == Difference(
        added=(Entry("latent", "soft", "tanh(wish)"),),
        rewired=(
            Rewired(
                "steer",
                "clip(wish - damp * obs.yaw, -1, 1)",
                "clip(soft - damp * obs.yaw, -1, 1)",
            ),
        ),
    )


def test_a_latent_under_an_old_name_that_now_means_something_else():
    # `bend` is now the largest; what it was is called `average`, and used as before.
    found = changed(
        (r"\bbend\b", "average"),
        (r"(    average = .*\n)", r"\1    bend = max(obs.tiles.x)\n"),
        (r"0.5 - average", "0.5 - bend"),
    )
    assert found == Difference(
        added=(Entry("latent", "bend", "max(obs.tiles.x)"),),
        renamed=(Renamed("latent", "bend", "average"),),
        heads=(
            HeadChanged(
                "gas",
                "normal(0.5 - bend, std=std_gas)",
                "normal(0.5 - bend, std=std_gas)",
            ),
        ),
    )


def test_bounds_and_initial_values():
    found = changed(
        (r'weight\(0.5, sign="\+"\)', "weight(0.75, low=0.0, high=2.0)"),
        (r"weight\(0.25\)", 'weight(0.25, sign="+")'),
        (r"std=0.1", "std=0.2"),
    )
    assert found == Difference(
        reconstrained=(
            Reconstrained("gain", (0.0, None), (0.0, 2.0)),
            Reconstrained("damp", (None, None), (0.0, None)),
        ),
        restarted=(Restarted("gain", 0.5, 0.75), Restarted("std_steer", 0.1, 0.2)),
    )


def test_heads():
    found = changed((r"std=0.1", "std=fixed(0.1)"), (r"0.5 - bend", "0.5"))
    assert found == Difference(
        removed=(Entry("weight", "std_steer", "weight(0.1, low=0.001, high=1)"),),
        heads=(
            HeadChanged(
                "steer", "normal(steer, std=std_steer)", "normal(steer, std=0.1)"
            ),
            HeadChanged(
                "gas", "normal(0.5 - bend, std=std_gas)", "normal(0.5, std=std_gas)"
            ),
        ),
    )


def test_families_and_coupling():
    mean, std = Observation("speed"), Number(0.1)
    heads = (Head("steer", "normal", (mean, std)), Head("gas", "normal", (mean, std)))
    old = Structure((Parameter("k", 0.0),), (), heads, coupling=(Weight("k"),))
    new = Structure((), (), (Head("steer", "beta", (mean, std)), heads[1]))
    assert difference(old, new) == Difference(
        removed=(Entry("weight", "k", "weight(0)"),),
        heads=(
            HeadChanged(
                "steer", "normal(obs.speed, std=0.1)", "beta(obs.speed, std=0.1)"
            ),
            HeadChanged("coupling", "k", ""),
        ),
    )


def remembering(name, initial, inner="add"):
    """`name = previous(name) + error`, then `out = previous(name) * 2`."""
    kept = Previous(name, initial)
    return Structure(
        (),
        (
            Latent("out", Call("mul", (kept, Number(2.0)))),
            Latent(name, Call(inner, (kept, Observation("error")))),
        ),
        (Head("steer", "normal", (Variable("out"), Number(0.1))),),
    )


def test_memory_follows_its_latent_and_its_start_counts():
    old = remembering("integral", 0.0)
    assert difference(old, remembering("total", 0.0)) == Difference(
        renamed=(Renamed("latent", "integral", "total"),)
    )
    found = difference(old, remembering("integral", 1.0))
    assert [change.name for change in found.rewired] == ["out", "integral"]


def test_the_locals_of_helpers_and_loops_do_not_count():
    old = """
def lean(x):
    t = x + 1
    return t * t

def policy(obs):
    total = 0
    for i in range(3):
        total = total + obs.tiles.x[i]
    a = lean(total)
    return action(steer=normal(a), gas=normal(total))
"""
    new = old.replace("t = x + 1", "other = x + 1").replace("t * t", "other * other")
    new = new.replace("def lean(x):", "def lean(x):\n    more = x").replace(
        "= x + 1", "= more + 1"
    )
    parsed = [parse(text, SMALL).structure for text in (old, new)]
    assert parsed[0] != parsed[1]
    assert difference(*parsed) == Difference()
    longer = parse(old.replace("range(3)", "range(2)"), SMALL).structure
    found = difference(parsed[0], longer)
    assert [change.name for change in found.rewired] == ["total"]
    # The first turn's `0 +` is part of the sum.
    assert found.rewired[0].before.count("obs.tiles.x") == 3
    assert found.rewired[0].after.count("obs.tiles.x") == 2


def test_a_change_inside_a_long_loop_is_seen():
    old = """
def policy(obs):
    x = obs.speed
    for i in range(60):
        x = x * 0.5 + x * obs.yaw + tanh(x)
    return action(steer=normal(x), gas=normal(0.5))
"""
    long, other = (
        parse(text, SMALL).structure for text in (old, old.replace("0.5 +", "0.25 +"))
    )
    assert difference(long, long) == Difference()
    assert difference(long, other).rewired


VIEWED = Difference(
    added=(Entry("latent", "soft", "tanh(wish)"),),
    renamed=(Renamed("weight", "gain", "k"),),
    rewired=(Rewired("steer", "a < 1", "b < 1"),),
    reconstrained=(Reconstrained("k", (None, None), (0.0, 2.0)),),
    restarted=(Restarted("k", 0.5, 0.75),),
    heads=(HeadChanged("gas", "normal(a, std=1)", "beta(a, std=1)"),),
)


def test_as_text():
    assert difference_text(VIEWED) == (
        "added          latent soft\n"
        "            + tanh(wish)\n"
        "renamed        weight gain -> k\n"
        "rewired        latent steer\n"
        "            - a < 1\n"
        "            + b < 1\n"
        "re-constrained weight k: free -> between 0 and 2\n"
        "initial value  weight k: 0.5 -> 0.75\n"
        "head           gas\n"
        "            - normal(a, std=1)\n"
        "            + beta(a, std=1)\n"
    )


def test_as_html():
    html = difference_html(VIEWED, "old & early", "new")
    assert "<title>old &amp; early → new</title>" in html
    assert "<code class=before><del>a</del> &lt; 1</code>" in html
    assert "<code class=after><ins>b</ins> &lt; 1</code>" in html
    assert "<del>normal</del>(a, std=1)" in html
    assert "src=" not in html


@pytest.mark.parametrize("old", ["r0", "r1", "r2", "car_a"])
@pytest.mark.parametrize("new", ["r1", "r3", "car_b"])
def test_any_two_programs_are_compared(old, new):
    structures = [
        parse((FIXTURES / f"{name}.py").read_text(), CAR).structure
        for name in (old, new)
    ]
    found = difference(*structures)
    assert bool(found) == (old != new)
    # Every weight and latent of either is kept, gone or new.
    for side, lost, structure in (
        (0, found.removed, structures[0]),
        (1, found.added, structures[1]),
    ):
        names = {p.name for p in structure.parameters}
        names |= {v.name for v in structure.latents if v.logged}
        other = {p.name for p in structures[1 - side].parameters}
        other |= {v.name for v in structures[1 - side].latents if v.logged}
        renamed = {r.old if side == 0 else r.new for r in found.renamed}
        assert names == {e.name for e in lost} | renamed | (names & other)
