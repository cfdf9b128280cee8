"""Who may import whom: the layers, and the few modules with a privilege."""

import ast
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent / "structjax"

# Lowest first; a module may import from its own layer and from those above it here.
LAYERS = (
    (
        "errors",
        "files",
        "forms",
        "outcomes",
        "ranges",
        "schema",
        "ledger",
        "provenance",
        "compilation",
        "distributions",
        "bounded",
        "statistics",
    ),
    ("language", "tasks.scene", "tasks.base"),
    ("memory", "lowering", "policy", "tasks", "demonstration", "original"),
    ("rollout", "table", "manifest", "run_lock", "runs"),
    (
        "evaluation",
        "gate",
        "likelihood",
        "fitting",
        "starts",
        "fit_report",
        "imitation",
    ),
    ("comparison",),
    ("diagnostics", "llm", "transcripts", "linting"),
    ("prompting", "network_file", "policy_file", "dialogue"),
    ("start_policy", "rounds", "analysis", "report", "rl"),
    ("refinement", "session"),
    ("cli", "__main__"),
)
FORKING = ("subprocess", "multiprocessing", "pty")


def modules() -> dict[str, Path]:
    found = {}
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        name = ".".join(p for p in parts if p != "__init__")
        if name:
            found[name] = path
    return found


MODULES = modules()


@cache
def imports(name: str) -> tuple[tuple[str, bool], ...]:
    """(imported module, whether at module level) of everything a module imports."""
    tree = ast.parse(MODULES[name].read_text())
    top = {id(node) for node in ast.walk(tree) if node in tree.body}
    found = []
    for node in ast.walk(tree):
        level = id(node) in top
        if isinstance(node, ast.Import):
            found += [(alias.name, level) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.append((node.module, level))
            found += [(f"{node.module}.{alias.name}", level) for alias in node.names]
    return tuple(found)


def within(name: str) -> list[str]:
    """Modules of structjax that a module imports, at any place."""
    names = (n.removeprefix("structjax.") for n, _ in imports(name) if "structjax" in n)
    return [n for n in names if n in MODULES]


def layer(name: str) -> int:
    """The layer of the longest listed prefix."""
    matches = [
        (len(prefix), index)
        for index, row in enumerate(LAYERS)
        for prefix in row
        if name == prefix or name.startswith(f"{prefix}.")
    ]
    assert matches, f"{name} belongs to no layer"
    return max(matches)[1]


@pytest.mark.parametrize("name", MODULES)
def test_a_module_imports_only_from_its_layer_and_lower_ones(name):
    too_high = [other for other in within(name) if layer(other) > layer(name)]
    assert not too_high


def test_there_is_no_import_cycle():
    graph = {
        name: {
            n.removeprefix("structjax.")
            for n, level in imports(name)
            if level and n.removeprefix("structjax.") in MODULES
        }
        - {name}
        for name in MODULES
    }
    while leaves := [n for n, others in graph.items() if not others & graph.keys()]:
        for name in leaves:
            del graph[name]
    assert not graph


def users_of(*packages: str) -> set[str]:
    return {
        name
        for name in MODULES
        for other, _ in imports(name)
        if any(other == p or other.startswith(f"{p}.") for p in packages)
    }


def test_only_policy_imports_linen():
    assert users_of("flax.linen") == {"policy"}


def test_only_its_provider_imports_openai_and_lazily():
    assert users_of("openai") == {"llm.openai"}
    assert not any(n.startswith("openai") and top for n, top in imports("llm.openai"))


def test_only_evolution_imports_evosax_and_lazily():
    assert users_of("evosax") == {"rl.strategies"}
    assert not any(
        n.startswith("evosax") and top for n, top in imports("rl.strategies")
    )


def test_processes_start_only_in_the_sandbox():
    assert {n.split(".")[0] for n in users_of(*FORKING)} == {"diagnostics"}


def test_tasks_and_policy_meet_only_in_rollouts():
    assert not any(n.startswith("tasks") for n in within("policy"))
    for name in MODULES:
        if name.startswith("tasks"):
            assert "policy" not in within(name)


def test_the_language_needs_no_jax_but_for_its_functions():
    users = {n for n in users_of("jax") if n.startswith("language")}
    assert users == {"language.functions"}


def test_the_sandbox_knows_no_jax():
    confined = ("sandbox", "server", "job", "watch", "confine", "landlock", "seccomp")
    for name in confined:
        roots = {other.split(".")[0] for other, _ in imports(f"diagnostics.{name}")}
        assert "jax" not in roots
