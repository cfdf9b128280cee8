"""What modules become: weights, latents, heads; without PyTorch."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from language.torch_source.modules import (
    SCHEMAS,
    SMALL,
    fixture,
    module,
)

from structjax.errors import StructjaxError
from structjax.language.hashing import semantic_hash
from structjax.language.parse import parse
from structjax.language.render import expression_text, render
from structjax.language.structure import Number, Variable, Weight
from structjax.language.torch_source import written
from structjax.language.torch_source.calls import FUNCTIONS
from structjax.language.torch_source.parse import parse_torch
from structjax.language.torch_source.refusal import TORCH_CODES
from structjax.language.torch_source.written import program_text

PAGE = Path(__file__).parents[3] / "docs" / "torch.md"


def latents(program):
    return [v.name for v in program.structure.latents if v.logged]


def definition(program, name):
    (found,) = (v for v in program.structure.latents if v.name == name)
    return expression_text(found.expression)


# Scalar parameters; logged latents, among them functions of parameters that a
# `weight_` entry logs (3 stds of r0, the gain of r3, 2 of the door); coupled pairs.
@pytest.mark.parametrize(
    ("name", "weights", "logged", "coupled"),
    [
        ("car_r0", 15, 13 + 3, 0),
        ("car_r1", 21, 17, 0),
        ("car_r3", 26, 23 + 1, 0),
        ("door", 7 + 3 + 4 + 6, 9 + 2, 6),
        ("lander", 3 + 4 + 2, 4, 0),
        ("cartpole", 4 + 2, 3, 0),
        ("planner", 3 + 1 + 4 + 2, 6, 3),
    ],
)
def test_counts(name, weights, logged, coupled):
    program = fixture(name)
    assert len(program.structure.parameters) == weights
    assert len(latents(program)) == logged
    assert len(program.structure.coupling) == coupled


@pytest.mark.parametrize("name", SCHEMAS)
def test_no_fixture_needs_torch(name, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)  # an import of it would raise
    assert fixture(name).structure.parameters


def test_latents_are_in_the_order_of_computation():
    program = fixture("car_r0")
    assert latents(program)[:7] == [
        *("lateral_offset", "mean_theta", "sharp_ahead", "speed", "wheel_angle"),
        *("omega", "wheel_speed"),
    ]


def test_the_first_policy_reads_as_its_equations():
    program = fixture("car_r0")
    assert definition(program, "lateral_offset") == "obs.tiles.x[0]"
    assert definition(program, "mean_theta") == "mean(obs.tiles.heading[0:6])"
    assert definition(program, "wheel_speed") == "mean(obs.wheel_speed)"
    assert definition(program, "raw_steer") == (
        "gain_steer * (offset * lateral_offset + theta * mean_theta"
        " + w_wheel_angle * wheel_angle + w_omega * omega)"
    )
    assert definition(program, "accel") == "clip(relu(gain_accel * speed_error), 0, 1)"
    steer, gas, brake = program.structure.heads
    assert [h.action for h in (steer, gas, brake)] == ["steer", "gas", "brake"]
    assert expression_text(gas.arguments[0]) == "accel"
    assert definition(program, "std_accel") == "abs(raw_std_accel)"


def test_comments_and_lines_document():
    program = fixture("car_r0")
    assert (
        program.docs[""] == "First policy: steer towards the road, hold a target speed."
    )
    assert program.docs["theta"] == "steer per mean road heading"
    text = program.source.split("\n")
    assert "self.w_theta = nn.Parameter" in text[program.lines["theta"] - 1]
    assert "mean_theta = tiles" in text[program.lines["mean_theta"] - 1]


def test_weight_names():
    program = parse_torch(
        module(
            "a = self.w * obs[:, 0] + self.v[1] + self.u * self.q",
            "info = {'weight_gain': self.w, 'weight_pair': self.v, 'latent_u': a}",
            "info.update({'weight_q': F.softplus(self.q), 'latent_max': a + 1})",
            parameters="w = 0.5; v = [0.1, 0.2]; u = 1.0; q = 0.3",
        ).replace("{'latent_a': a}", "info"),
        SMALL,
    )
    names = [p.name for p in program.structure.parameters]
    assert names == ["gain", "pair_0", "pair_1", "raw_u", "raw_q"]
    assert latents(program) == ["u", "q", "latent_max"]
    messages = [str(p) for p in program.warnings if p.code == "RENAMED"]
    assert messages == [
        "line 11: warning: latent `max` becomes `latent_max`; the language needs the "
        "name for itself, or it is taken"
    ]


def read(*lines, **options):
    return parse_torch(module(*lines, **options), SMALL)


def test_vector_operators_where_vectors_are():
    program = read(
        "a = (torch.abs(tiles[:, :2, 1]) * self.w).sum(dim=1)", arguments="tiles"
    )
    assert definition(program, "a") == "sum(abs(obs.tiles.y[0:2]) * w)"
    assert len(program.structure.latents) == 1


def test_tables_are_read_as_vectors_along_an_axis():
    program = read("a = (tiles ** 2).sum(dim=2).max(dim=1).values", arguments="tiles")
    assert definition(program, "a") == "max(obs.tiles.x ** 2 + obs.tiles.y ** 2)"


def test_equal_values_are_computed_once():
    program = read("b = torch.sin(obs[:, 0])\na = b * torch.sin(obs[:, 0])")
    assert definition(program, "a") == "_b * _b"


@pytest.mark.parametrize(
    ("arguments", "line", "text"),
    [
        ("obs", "a = obs[:, 6]", "obs.speed"),
        ("obs", "a = obs[:, 4]", "obs.tiles.y[1]"),
        (
            "tiles, rest",
            "a = tiles[:, 2, 1] + rest[:, 0]",
            "obs.tiles.y[2] + obs.speed",
        ),
        ("speed, wheel", "a = speed + wheel[:, 3]", "obs.speed + obs.wheel[3]"),
        ("wheel, state", "a = state[:, 6] + wheel[:, 0]", "obs.speed + obs.wheel[0]"),
        (
            "tiles_y, other",
            "a = tiles_y[:, 1] * other[:, 3]",
            "obs.tiles.y[1] * obs.speed",
        ),
    ],
)
def test_inputs_by_name(arguments, line, text):
    assert definition(read(line, arguments=arguments), "a") == text


def outputs(mean, spread, **options):
    text = module("a = self.w * obs[:, 0]", **options)
    text = text.replace("torch.stack([a, a], dim=-1)", mean)
    return parse_torch(text.replace("torch.ones_like(mean)", spread), SMALL).structure


def test_a_diagonal_factor_gives_its_elements():
    weights = {"parameters": "w = 0.5; s = [0.1, 0.2]"}
    structure = outputs(
        "torch.stack([a, -a], 1)", "torch.diag_embed(self.s)", **weights
    )
    assert [h.arguments[1] for h in structure.heads] == [Weight("s_0"), Weight("s_1")]
    assert structure.coupling == ()


def test_a_full_factor_couples():
    rows = "torch.stack([torch.stack([self.s[0], 0 * self.w]), self.s[1:]])"
    weights = {"parameters": "w = 0.5; s = [0.1, 0.2, 0.3]"}
    with pytest.raises(StructjaxError, match="row 0 of the Cholesky factor"):
        outputs("torch.stack([a, -a], 1)", rows, **weights)
    structure = outputs("torch.stack([a, -a], 1)", f"torch.tril({rows})", **weights)
    first, second = (h.arguments[1] for h in structure.heads)
    assert first == Weight("s_0")
    assert expression_text(second) == "norm(stack(s_1, s_2))"
    assert [expression_text(e) for e in structure.coupling] == ["s_1 / s_2"]


def test_stds_and_constants():
    structure = outputs("torch.stack([a, -a], 1)", "torch.full((2,), 0.2)")
    assert [h.arguments[1] for h in structure.heads] == [Number(0.2)] * 2
    structure = outputs("torch.stack([a, -a], 1)", "self.w.expand(obs.shape[0], 1)")
    assert [h.arguments[1] for h in structure.heads] == [Weight("w")] * 2


def test_logits():
    heads = fixture("cartpole").structure.heads
    assert [h.family for h in heads] == ["categorical"]
    assert len(heads[0].arguments) == 2


# --- in the structure language -------------------------------------------------------


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_module_is_written_in_the_language(name):
    program, schema = fixture(name), SCHEMAS[name]
    again = parse(program_text(program, schema), schema).structure
    assert again.parameters == program.structure.parameters
    assert again.coupling == program.structure.coupling
    # Limits of a module's own around a std are kept under a name.
    count = len(program.structure.latents)
    assert again.latents[:count] == program.structure.latents
    named = {Variable(x.name): x.expression for x in again.latents[count:]}
    for ours, theirs in zip(again.heads, program.structure.heads, strict=True):
        kept = tuple(named.get(argument, argument) for argument in ours.arguments)
        assert kept == theirs.arguments


@pytest.mark.parametrize("name", ["door", "planner"])
def test_coupling_is_never_lost_in_writing(name, monkeypatch):
    def forgetful(structure, docs):
        return render(replace(structure, coupling=()), docs)

    monkeypatch.setattr(written, "render", forgetful)
    with pytest.raises(StructjaxError, match="its text differs"):
        program_text(fixture(name), SCHEMAS[name])


def test_layout_does_not_matter():
    text = module("a = self.w * obs[:, 0]")
    other = "\ufeff" + text.replace("\n", "\r\n").replace("self.w * ", "self.w  *  ")
    one, two = parse_torch(text, SMALL), parse_torch(other, SMALL)
    assert semantic_hash(one.structure) == semantic_hash(two.structure)


def test_the_page_lists_functions_and_problems():
    page = PAGE.read_text()
    for name in FUNCTIONS:
        assert f"`{name}`" in page
    for code, meaning in TORCH_CODES.items():
        assert f"| `{code}` | {meaning} |" in page
