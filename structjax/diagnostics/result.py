"""What an invariant found, and how its numbers are printed."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Verdict = Literal["pass", "warn", "fail"]


@dataclass(frozen=True)
class InvariantResult:
    """One invariant of one table.

    Attributes:
      name: e.g. `"alignment"`.
      verdict: `fail`: the table or the policy cannot be trusted; `warn`: a property
        that good policies rarely have; `pass`: neither.
      text: the finding in words, for a person or an LLM.
      values: the figures behind it, JSON.
    """

    name: str
    verdict: Verdict
    text: str
    values: Mapping[str, Any] = field(default_factory=dict)


def warn_if(suspicious: bool) -> Verdict:
    """`warn` or `pass`."""
    return "warn" if suspicious else "pass"


def fail_if(broken: bool) -> Verdict:
    """`fail` or `pass`."""
    return "fail" if broken else "pass"


def number(value: float) -> str:
    """Four significant digits, so that equal runs print equal text."""
    return f"{float(value):.4g}"


def within(low: float, high: float) -> str:
    """`in [0, 1]`, or `is 1` where both ends are printed alike."""
    first, last = number(low), number(high)
    return f"is {first}" if first == last else f"in [{first}, {last}]"


def percent(share: float) -> str:
    """A share of one as `12.3 %`."""
    return f"{100 * float(share):.3g} %"
