"""A policy whose best fit is known: least squares."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from structjax.imitation import Anchor, ImitationConfig
from structjax.language.structure import (
    Call,
    Head,
    Latent,
    Number,
    Observation,
    Parameter,
    Structure,
    Variable,
    Weight,
)
from structjax.policy import StructuredPolicy, variables_from
from structjax.schema import ActionField, Field, Schema

SCHEMA = Schema(
    observations=(
        Field("x", None, "m", -3.0, 3.0, "first"),
        Field("y", None, "m", -3.0, 3.0, "second"),
    ),
    actions=(ActionField("push", "push", low=-2.0, high=2.0),),
)


def call(name, *arguments):
    return Call(name, arguments)


def linear(a=0.5, b=0.5, std=0.2, dead=None):
    """push = normal(a * x + b * y [+ relu(-1) * dead], std)."""
    mean = call(
        "add",
        call("mul", Weight("a"), Observation("x")),
        call("mul", Weight("b"), Observation("y")),
    )
    parameters = [Parameter("a", a), Parameter("b", b)]
    if dead is not None:
        parameters.append(Parameter("dead", dead))
        silent = call("mul", Weight("dead"), call("relu", Number(-1.0)))
        mean = call("add", mean, silent)
    return Structure(
        parameters=(*parameters, Parameter("std_push", std, 2e-3, 2.0)),
        latents=(Latent("pull", mean),),
        heads=(Head("push", "normal", (Variable("pull"), Weight("std_push"))),),
    )


def policy_of(**values):
    return StructuredPolicy(linear(**values), SCHEMA)


def demonstration(seed=0, number=300, a=0.8, b=-0.3, noise=0.1):
    generator = np.random.default_rng(seed)
    observations = generator.normal(size=(number, 2)).astype(np.float32)
    push = observations @ np.array([a, b]) + noise * generator.normal(size=number)
    return observations, push[:, None].astype(np.float32)


def least_squares(observations, actions):
    """The maximum of the Gaussian likelihood: coefficients and residual RMS."""
    solution, *_ = np.linalg.lstsq(observations, actions, rcond=None)
    return solution[:, 0], np.sqrt(np.mean((actions - observations @ solution) ** 2))


def anchor_of(policy, strength=0.0):
    written = variables_from(policy.structure, {})
    mask = jax.tree.map(lambda _: 1.0, written)
    return Anchor(written, mask, jnp.asarray(strength))


PLAIN = ImitationConfig(
    validation_share=0.0, restarts=1, num_updates=1000, final_learning_rate=0.01
)


class Toy(NamedTuple):
    policy: StructuredPolicy
    observations: np.ndarray
    actions: np.ndarray
