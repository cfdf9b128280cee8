"""What the two identities see and do not see."""

import pytest
from language.programs import SMALL, parse

from structjax.language.hashing import interface_hash, semantic_hash
from structjax.language.parse import Program

BASE = """
gain = weight(0.5, sign="+")
curve = weight(2.0)

def double(value):
    twice = value * 2
    return twice + 1

def policy(obs):
    offset = double(obs.yaw * gain)
    bend = curve * mean(obs.tiles.x[:2])
    demand = offset + bend
    return action(steer=normal(demand), gas=normal(gain * obs.speed, std=0.1))
"""


def changed(*pairs: tuple[str, str]) -> Program:
    text = BASE
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new)
    return parse(text, SMALL)


@pytest.mark.parametrize(
    "pairs",
    [
        [("gain", "zeal"), ("offset", "aaa"), ("double", "f"), ("twice", "z")],
        [("0.5", "0.75"), ("2.0", "-7.0"), ("0.1", "0.2")],
        [("\n\n", "\n# note\n\n\n")],
        [("demand = offset", "demand  =  (offset"), ("+ bend", "+ bend)  # why")],
        # independent statements in another order
        [
            ("    offset = double(obs.yaw * gain)\n", ""),
            ("    demand", "    offset = double(obs.yaw * gain)\n    demand"),
        ],
        # independent declarations in another order
        [
            ("curve = weight(2.0)\n", ""),
            ("\ngain", "\ncurve = weight(2.0)\ngain"),
        ],
        [
            (
                "steer=normal(demand), gas=normal(gain * obs.speed, std=0.1)",
                "gas=normal(gain * obs.speed, std=0.1), steer=normal(demand)",
            )
        ],
    ],
)
def test_semantic_hash_does_not_see(pairs):
    assert semantic_hash(changed(*pairs).structure) == semantic_hash(
        changed().structure
    )


@pytest.mark.parametrize(
    "pairs",
    [
        [("offset + bend", "offset - bend")],
        [("offset + bend", "bend + offset")],
        [("obs.yaw", "obs.speed")],
        [("[:2]", "[:3]")],
        [("value * 2", "value * 3")],
        [(', sign="+"', "")],
        [('sign="+"', 'sign="+", high=9.0')],
        [("gain * obs.speed", "curve * obs.speed")],
        [("std=0.1", "std=fixed(0.1)")],
        [("std=0.1", "std=gain")],
        [("demand)", "demand * 1)")],
        [("bend = ", "_bend = "), ("+ bend", "+ _bend")],
        [("    demand", "    extra = obs.yaw\n    demand")],
        [("curve =", "other = weight(1.0)\ncurve =")],
    ],
)
def test_semantic_hash_sees(pairs):
    assert semantic_hash(changed(*pairs).structure) != semantic_hash(
        changed().structure
    )


def test_swapped_weights_of_different_bounds_differ():
    # Both wire two weights to two fields; only the roles of the bounds differ.
    swapped = changed(("* gain", "* XX"), ("curve *", "gain *"), ("XX", "curve"))
    assert semantic_hash(swapped.structure) != semantic_hash(changed().structure)


def test_unused_latents_are_ordered_by_what_they_compute():
    one = [("    demand", "    u = obs.yaw\n    v = obs.speed\n    demand")]
    two = [("    demand", "    v = obs.speed\n    u = obs.yaw\n    demand")]
    assert semantic_hash(changed(*one).structure) == semantic_hash(
        changed(*two).structure
    )


@pytest.mark.parametrize(
    "pairs",
    [
        [("gain", "zeal")],
        [("offset", "shift")],
        [("0.5", "0.75")],
        [("std=0.1", "std=0.2")],
        [("offset + bend", "offset - bend")],
    ],
)
def test_interface_hash_sees_names_and_values(pairs):
    assert interface_hash(changed(*pairs).structure) != interface_hash(
        changed().structure
    )


def test_interface_hash_does_not_see_comments():
    same = changed(("demand = ", "# why\n    demand =  "))
    assert interface_hash(same.structure) == interface_hash(changed().structure)


def test_hashes_are_stable():
    # Recorded: they stand in run directories and saved policies.
    structure = changed().structure
    assert semantic_hash(structure) == (
        "de257ffe594f6c7024471ad96064ed30b525ee0358386542f6cbc0f353646a70"
    )
    assert interface_hash(structure) == (
        "4d9debd94f317ca629360a88c17ef5097de7694680a09040180b7c5d43576732"
    )


def test_long_chains_do_not_overflow():
    lines = "".join(f"    x{i} = x{i - 1} + obs.yaw\n" for i in range(1, 1500))
    text = (
        f"w = weight(1.0)\ndef policy(obs):\n    x0 = w\n{lines}"
        "    return action(steer=normal(x1499), gas=normal(x0))\n"
    )
    assert len(semantic_hash(parse(text, SMALL).structure)) == 64
