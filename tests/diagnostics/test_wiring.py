"""What the invariants ask about a structure's wiring."""

from structjax.diagnostics.wiring import (
    additive_terms,
    label,
    observed,
    saturation_bounds,
)
from structjax.language.structure import (
    Call,
    Head,
    Index,
    Latent,
    Number,
    Observation,
    Previous,
    Slice,
    Structure,
    Variable,
    Weight,
)


def call(operator: str, *arguments):
    return Call(operator, arguments)


X, Y = Observation("x"), Index(Observation("tiles.y"), 3)
W, U = Weight("w"), Weight("u")


def program(mean, *latents: Latent) -> Structure:
    return Structure((), latents, (Head("steer", "normal", (mean, Number(0.1))),))


def labels(structure: Structure) -> list[str]:
    return [label(term) for term in additive_terms(structure, "steer")]


def test_terms_are_found_through_clips_variables_signs_and_factors():
    """clip(w * (x - |y|) + lead), lead = -(u * x)."""
    inner = call("mul", W, call("sub", X, call("abs", Y)))
    lead = Latent("lead", call("neg", call("mul", U, X)))
    mean = call("add", inner, Variable("lead"))
    steer = Latent("steer", call("clip", mean, Number(-1.0), Number(1.0)))
    assert labels(program(Variable("steer"), lead, steer)) == [
        "mul(w, obs.x)",
        "mul(w, abs(obs.tiles.y[3]))",
        "lead",
    ]


def test_a_mean_without_a_sum_is_one_term():
    steer = Latent("steer", call("tanh", call("mul", W, X)))
    assert labels(program(Variable("steer"), steer)) == ["steer"]


def test_doubling_variables_do_not_explode():
    """x1 = w x + u y, x2 = w x1 + u x1, ...: 2 ** 41 terms if all were opened."""
    chain = [Latent("x0", call("add", call("mul", W, X), call("mul", U, Y)))]
    for i in range(40):
        last = Variable(f"x{i}")
        both = call("add", call("mul", W, last), call("mul", U, last))
        chain.append(Latent(f"x{i + 1}", both))
    assert len(labels(program(Variable("x40"), *chain))) <= 64


def test_dependence_on_observations_goes_through_variables():
    structure = program(
        W,
        Latent("fixed", call("mul", W, Number(2.0))),
        Latent("_part", Slice(Observation("tiles.y"), 0, 2), size=2),
        Latent("seen", call("add", Variable("fixed"), call("norm", Variable("_part")))),
    )
    assert observed(structure) == {"_part", "seen"}


def test_dependence_on_observations_goes_through_memory():
    structure = program(
        W,
        Latent("early", call("mul", W, Previous("late", 0.0))),
        Latent("fixed", call("mul", W, Previous("fixed", 1.0))),
        Latent("late", call("add", Variable("early"), X)),
    )
    assert observed(structure) == {"early", "late"}
    steer = call("add", Variable("late"), Previous("late", 0.0))
    late = Latent("late", call("mul", W, X))
    assert labels(program(steer, late)) == ["late", "previous(late)"]


def test_only_logged_latents_with_constant_bounds_can_saturate():
    structure = program(
        W,
        Latent("a", call("clip", X, Number(-2.0), Number(3.0))),
        Latent("b", call("clip", X, Number(-2.0), W)),
        Latent("c", call("sigmoid", X)),
        Latent("_d", call("tanh", X)),
    )
    assert saturation_bounds(structure) == {"a": (-2.0, 3.0), "c": (0.01, 0.99)}
