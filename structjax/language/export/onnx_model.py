"""A program as an ONNX model."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from structjax.errors import StructjaxError
from structjax.language.export.kinds import Kinds, fitting_heads, weight_values
from structjax.language.export.onnx_graph import Builder
from structjax.language.structure import (
    Expression,
    Head,
    Observation,
    Previous,
    Structure,
    Variable,
    Weight,
)
from structjax.language.usage import memory
from structjax.schema import Schema

OPSET = 18
IR_VERSION = 9
"""What the model asks of a runtime: both of 2023, so that older ones take it too."""


def onnx_model(
    structure: Structure, schema: Schema, values: Mapping[str, float]
) -> bytes:
    """A serialised ONNX model of a policy, float32.

    Inputs: `obs [batch, O]`, and `memory [batch, M]` where the program remembers
    something. Outputs: `action`, without noise and in its range `[batch, A]` (an index
    `[batch]` where it is a choice); `mean` and `std [batch, A]`, or `logits`
    `[batch, K]`; `latent_<name>`, `[batch]` or `[batch, n]`; `coupling` and
    `next_memory` where there are any. Weights are initialisers `weight_<name>`. The
    metadata name fields, actions and memories, the latter with their first values.

    Args:
      structure: the program.
      schema: the task's fields.
      values: weight values by name; others are as written.

    Raises:
      StructjaxError: the extra `export` is not installed; the program was made for
        another schema, or has no such weight.
    """
    onnx = _onnx()
    heads = fitting_heads(structure, schema)
    builder = Builder(onnx, Kinds(structure, schema))
    kept = memory(structure)
    _read(builder, structure, schema, weight_values(structure, values))
    for latent in structure.latents:
        variable = Variable(latent.name)
        builder.values[variable] = builder.value(latent.expression)
    outputs = _Outputs(builder, onnx)
    _actions(outputs, structure, schema, heads)
    for latent in structure.latents:
        if latent.logged:
            real = builder.real(Variable(latent.name))
            outputs.add(f"latent_{latent.name}", real, latent.size or 0)
    if kept:
        reals = [builder.real(Variable(p.latent)) for p in kept]
        outputs.add("next_memory", builder.join(reals), len(kept))
    inputs = [_tensor(onnx, "obs", schema.observation_size)]
    if kept:
        inputs.append(_tensor(onnx, "memory", len(kept)))
    return _model(onnx, builder, inputs, outputs.found, _facts(schema, kept))


def _onnx() -> Any:
    try:
        import onnx
    except ImportError as error:
        raise StructjaxError(
            "an ONNX model needs the package onnx",
            kind="extra",
            hint="pip install 'structjax[export]'",
        ) from error
    return onnx


def _tensor(onnx: Any, name: str, size: int, kind: Any = None) -> Any:
    """A tensor `[batch, size]`, or `[batch]` for size 0."""
    shape = ["batch", size] if size else ["batch"]
    kind = onnx.TensorProto.FLOAT if kind is None else kind
    return onnx.helper.make_tensor_value_info(name, kind, shape)


def _read(
    builder: Builder, structure: Structure, schema: Schema, values: Mapping[str, float]
) -> None:
    """Defines fields, weights and what is remembered."""
    clean = builder.cleaned("obs")
    first = builder.columns(clean, 0, 1)
    builder.zeros = builder.node("Mul", first, builder.number(0.0))
    for field in schema.observations:
        place = schema.slice_of(field.name)
        part = builder.columns(clean, place.start, place.stop)
        builder.values[Observation(field.name)] = part
    for name, value in values.items():
        array = np.full((1, 1), value, np.float32)
        # A weight may have the name of an input or output.
        builder.values[Weight(name)] = builder.tensor(array, f"weight_{name}")
    for i, previous in enumerate(memory(structure)):
        builder.recall(previous, builder.columns("memory", i, i + 1))


class _Outputs:
    """What the model returns."""

    def __init__(self, builder: Builder, onnx: Any) -> None:
        self._builder = builder
        self._onnx = onnx
        self.found: list[Any] = []

    def add(self, name: str, value: str, size: int) -> None:
        """Returns a real tensor: `[batch, size]`, or `[batch]` for size 0."""
        full = self._builder.node("Add", value, self._builder.zeros)
        if size:
            self._builder.node("Identity", full, name=name)
        else:
            axis = self._builder.whole(1)
            self._builder.node("Squeeze", full, axis, name=name)
        self.found.append(_tensor(self._onnx, name, size))

    def add_choice(self, logits: str) -> None:
        """Returns the first of the largest logits."""
        options = {"axis": 1, "keepdims": 0, "select_last_index": 0}
        self._builder.node("ArgMax", logits, name="action", **options)
        self.found.append(
            _tensor(self._onnx, "action", 0, self._onnx.TensorProto.INT64)
        )


def _actions(
    outputs: _Outputs, structure: Structure, schema: Schema, heads: Sequence[Head]
) -> None:
    """Returns the action and the arguments of its distribution."""
    builder = outputs._builder

    def column(expressions: Sequence[Expression]) -> str:
        return builder.join([builder.real(e) for e in expressions])

    if schema.discrete:
        logits = column(heads[0].arguments)
        outputs.add_choice(logits)
        outputs.add("logits", logits, len(heads[0].arguments))
        return
    mean, std = (column([head.arguments[i] for head in heads]) for i in (0, 1))
    modes = [_mode(builder, schema, head, mean, std, i) for i, head in enumerate(heads)]
    outputs.add("action", builder.join(modes), len(heads))
    outputs.add("mean", mean, len(heads))
    outputs.add("std", std, len(heads))
    if structure.coupling:
        outputs.add("coupling", column(structure.coupling), len(structure.coupling))


def _mode(
    builder: Builder, schema: Schema, head: Head, mean: str, std: str, i: int
) -> str:
    """One action without noise, in its range."""
    action = schema.actions[i]
    low, high = builder.number(action.low), builder.number(action.high)
    location = builder.columns(mean, i, i + 1)
    if head.family == "tanh_normal":
        middle = builder.number(0.5 * (action.low + action.high))
        half = builder.number(action.half_range)
        turned = builder.node("Mul", half, builder.node("Tanh", location))
        location = builder.node("Add", middle, turned)
    elif head.family == "beta":
        width = builder.number(action.high - action.low)
        share = builder.node("Div", builder.node("Sub", location, low), width)
        spread = builder.node("Div", builder.columns(std, i, i + 1), width)
        mode = _beta_mode(builder, share, spread)
        location = builder.node("Add", low, builder.node("Mul", width, mode))
    return builder.clip(location, low, high)


def _beta_mode(b: Builder, share: str, spread: str) -> str:
    """The likeliest share of a beta on [0, 1]; both of its shapes are at least 1."""
    one = b.number(1.0)
    mean = b.clip(share, b.number(0.005), b.number(0.995))
    rest = b.node("Sub", one, mean)
    product = b.node("Mul", mean, rest)
    bounds = [
        b.node("Div", b.node("Mul", product, part), b.node("Add", one, part))
        for part in (mean, rest)
    ]
    variance = b.node("Min", b.node("Mul", spread, spread), *bounds)
    count = b.node("Sub", b.node("Div", product, variance), one)
    first, second = (
        b.node("Sub", b.node("Max", b.node("Mul", part, count), one), one)
        for part in (mean, rest)
    )
    total = b.node("Add", first, second)
    flat = b.node("Less", total, b.number(1e-6))
    return b.guarded(flat, b.node("Div", first, b.guarded(flat, total, 1.0)), 0.5)


def _facts(schema: Schema, kept: Sequence[Previous]) -> dict[str, str]:
    facts = {
        "observations": {f.name: f.size for f in schema.observations},
        "actions": {
            a.name: a.choices or [float(a.low), float(a.high)] for a in schema.actions
        },
        "memory": {p.latent: p.initial for p in kept},
    }
    return {name: json.dumps(fact) for name, fact in facts.items()}


def _model(
    onnx: Any,
    builder: Builder,
    inputs: Sequence[Any],
    outputs: Sequence[Any],
    facts: Mapping[str, str],
) -> bytes:
    graph = onnx.helper.make_graph(
        builder.nodes, "policy", inputs, outputs, builder.constants
    )
    model = onnx.helper.make_model(
        graph,
        opset_imports=[onnx.helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="structjax",
    )
    onnx.helper.set_model_props(model, dict(facts))
    onnx.checker.check_model(model, full_check=True)
    return model.SerializeToString()
