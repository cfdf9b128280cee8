"""A module's program in the structure language, for every other command."""

from dataclasses import replace

from structjax.errors import StructjaxError
from structjax.language.heads import MIN_STD
from structjax.language.parse import Program, StructureError, parse
from structjax.language.render import render
from structjax.language.structure import Call, Head, Number, Structure
from structjax.schema import ActionField, Schema


def program_text(program: Program, schema: Schema) -> str:
    """The program of a module, as text that `parse` accepts.

    The language keeps every std that is an expression between 1e-3 and 1 of the
    action's half range; a module's own has no such limits. Nothing else differs.

    Raises:
      StructjaxError: the language cannot say it.
    """
    limited = _limited(program.structure, schema)
    text = render(limited, program.docs)
    try:
        same = parse(text, schema).structure == limited
        coupled = bool(limited.coupling)
        reason = "its actions are correlated" if coupled else "its text differs"
    except StructureError as error:
        same, reason = False, str(error).split("\n")[0]
    if not same:
        raise StructjaxError(
            f"the module cannot be written in the structure language: {reason}",
            kind="torch",
            hint="its check is valid all the same; simplify its standard deviations",
        )
    return text


def _limited(structure: Structure, schema: Schema) -> Structure:
    """The structure with stds limited as the language limits them."""
    actions = {action.name: action for action in schema.actions}
    heads = tuple(_head(head, actions[head.action]) for head in structure.heads)
    return replace(structure, heads=heads)


def _head(head: Head, action: ActionField) -> Head:
    if head.family != "normal" or isinstance(head.arguments[1], Number):
        return head
    mean, std = head.arguments
    bounds = (Number(MIN_STD * action.half_range), Number(action.half_range))
    return replace(head, arguments=(mean, Call("clip", (std, *bounds))))
