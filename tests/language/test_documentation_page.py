"""The language page for people holds what the prompt says, word for word."""

from pathlib import Path

from structjax.language.problem import CODES
from structjax.language.reference import language_page

PAGE = (Path(__file__).parent.parent.parent / "docs" / "language.md").read_text()


def test_the_page_quotes_the_prompt():
    assert language_page().strip() in PAGE


def test_the_page_lists_every_problem():
    for code, meaning in CODES.items():
        assert f"| `{code}` | {meaning} |" in PAGE
