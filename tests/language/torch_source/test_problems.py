"""Problems of a module come together; warnings say where a guard could show."""

import pytest
from language.torch_source.modules import SMALL, module, problems

from structjax.language.parse import StructureError
from structjax.language.torch_source.parse import parse_torch

A = "a = self.w * obs[:, 0]\n"
GOOD = module(A.strip())


def test_every_problem_is_found_at_once():
    lines = "b = torch.foo(obs)\nc = obs[:, 99]\na = self.missing\nopen('x')"
    found = [problem.split(":")[0] for problem in problems(module(lines))]
    assert found == [*("CALL line 9", "INDEX line 10", "ATTR line 11", "CALL line 12")]


def test_entries_of_info_fail_one_by_one():
    entries = "{'latent_a': torch.foo(a), 'latent_b': torch.bar(a), 'latent_c': a}"
    found = problems(GOOD.replace("{'latent_a': a}", entries))
    assert [p.split(";")[0] for p in found] == [
        "CALL line 11: `torch.foo(a)`: `torch.foo` is not accepted",
        "CALL line 11: `torch.bar(a)`: `torch.bar` is not accepted",
    ]


def test_invalid_python():
    (problem,) = problems("class Policy(nn.Module:\n    pass\n")
    assert problem.startswith("SYNTAX line 1: invalid Python")
    assert problem.endswith("`class Policy(nn.Module):` with `__init__` and `forward`")


def test_expansion_has_a_budget():
    turns = "for i in range(200):\n    for j in range(200):\n        a = a + i * j * b"
    (problem,) = problems(module("b = obs[:, 1]\n" + A + turns))
    assert problem.startswith("TOO_LONG line 13: the module expands to over 2,000 oper")


def test_a_harmless_file_stays_harmless(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = "open('made', 'w')\n" + GOOD.replace(
        "a = self", "open('made', 'w')\n        a = self"
    )
    with pytest.raises(StructureError):
        parse_torch(text, SMALL)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("a = torch.sqrt(obs[:, 0])", ["GUARDED"]),
        ("a = torch.sqrt(self.w ** 2)", ["GUARDED"]),
        ("a = torch.sqrt(self.w ** 2 + 1e-6) * obs[:, 0]", []),
        ("a = torch.sqrt(obs[:, 0] ** 2) * self.w", []),
        ("a = torch.sqrt(obs.abs().sum(dim=1)) * self.w", []),
        ("a = torch.log(obs[:, 0].clamp(min=1e-3)) * self.w", []),
        ("a = torch.log(obs[:, 0].abs()) * self.w", ["GUARDED"]),
        ("a = torch.log1p(obs[:, 0].abs()) * self.w", []),
        ("a = torch.atan2(obs[:, 0], obs[:, 1]) * self.w", ["GUARDED"]),
        ("a = torch.atan2(obs[:, 0], obs[:, 1].exp() + 0.1) * self.w", []),
        ("a = obs[:, 0] ** 1.5 * self.w", ["GUARDED"]),
        ("a = torch.nan_to_num(obs)[:, 0] * self.w", ["CLEANED"]),
        ("a = torch.nan_to_num(obs, posinf=0.0, neginf=0.0)[:, 0] * self.w", []),
    ],
)
def test_warnings_where_a_guard_could_show(line, code):
    expanded = "a = a.expand(obs.shape[0])"
    warnings = parse_torch(module(line, expanded), SMALL).warnings
    quiet = ("UNUSED_WEIGHT", "BLIND_ACTION", "NO_WEIGHT")
    assert [w.code for w in warnings if w.code not in quiet] == code


def test_a_warning_says_what_differs():
    (warning,) = parse_torch(
        module("a = torch.sqrt(obs[:, 0]) * self.w"), SMALL
    ).warnings
    assert str(warning) == (
        "line 9: warning: `sqrt` has value and derivative 0 where PyTorch's are NaN or "
        "infinite; add a small positive number to the argument"
    )
