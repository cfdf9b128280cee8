"""A module's program in the structure language, for every other command."""

from dataclasses import replace

from structjax.errors import StructjaxError
from structjax.language.heads import std_bounds
from structjax.language.parse import Program, StructureError, parse
from structjax.language.render import render
from structjax.language.structure import Call, Latent, Number, Structure, Variable
from structjax.schema import Schema


def program_text(program: Program, schema: Schema) -> str:
    """The program of a module as text that `parse` accepts; it computes the same.

    Raises:
      StructjaxError: the language cannot say it.
    """
    structure = _with_named_stds(program.structure, schema)
    text = render(structure, program.docs)
    try:
        same = parse(text, schema).structure == structure
        reason = "its text differs"
    except StructureError as error:
        same, reason = False, str(error).split("\n")[0]
    if not same:
        raise StructjaxError(
            f"the module cannot be written in the structure language: {reason}",
            kind="torch",
            hint="its check is valid all the same; simplify its standard deviations",
        )
    return text


def _with_named_stds(structure: Structure, schema: Schema) -> Structure:
    """Stds with limits of the module's own under a name, so that they are kept.

    The language reads a `clip` around a std as its own limits.
    """
    actions = {action.name: action for action in schema.actions}
    heads, latents = [], list(structure.latents)
    for head in structure.heads:
        mean, *rest = head.arguments
        if head.family != "categorical" and isinstance(rest[0], Call):
            limits = tuple(map(Number, std_bounds(head.family, actions[head.action])))
            std = rest[0]
            if std.operator == "clip" and std.arguments[1:] != limits:
                name = f"_std_{head.action}"
                latents.append(Latent(name, std))
                head = replace(head, arguments=(mean, Variable(name)))
        heads.append(head)
    return replace(structure, heads=tuple(heads), latents=tuple(latents))
