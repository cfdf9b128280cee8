"""What a diagnostic says, as text that is safe to print, to store and to send on."""

import re
import unicodedata
from dataclasses import asdict, dataclass
from typing import Any, Literal

Status = Literal["ok", "exception", "timeout", "memory", "output_limit", "killed"]

_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor movement
    r"|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?"  # OSC, DCS, ...: titles, links
    r"|\x1b[ -/]*[0-~]"  # two-byte escapes
)
# An object's address differs between runs and says nothing about the table.
_ADDRESSES = re.compile(r"\b0x[0-9a-f]{8,16}\b")
_HIDDEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}  # controls, bidi and zero width, surrogates


@dataclass(frozen=True)
class Finding:
    """The measured result of one diagnostic.

    Attributes:
      name: the diagnostic's function, or `"module"` for what runs at top level.
      status: `"ok"`, or how it ended otherwise.
      text: what it printed, then its returned value, or the traceback of its own
        lines. Plain text without control characters.
      seconds: wall time.
    """

    name: str
    status: Status
    text: str
    seconds: float

    def to_json(self) -> dict[str, Any]:
        """`{"name", "status", "text", "seconds"}`."""
        return asdict(self)


def clean_text(text: str) -> str:
    """Removes terminal escapes, control and invisible characters, and addresses.

    Newlines and tabs stay; a carriage return becomes a newline.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = _ESCAPES.sub("", text)
    if not text.isascii() or not text.isprintable():
        text = "".join(c for c in text if c in "\n\t" or not _hidden(c))
    return _ADDRESSES.sub("0x...", text)


def _hidden(character: str) -> bool:
    return unicodedata.category(character) in _HIDDEN
