"""structjax: interpretable control policies, written by an LLM, at JAX speed."""

from importlib import import_module
from typing import Any

# Loaded when first used: `import structjax` costs nothing, and the sandbox's modules
# can be imported without JAX.
_HOME = {
    "Demonstration": "structjax.demonstration",
    "ImitationConfig": "structjax.likelihood",
    "ManualModel": "structjax.llm.manual",
    "OpenAIModel": "structjax.llm.openai",
    "RefinementConfig": "structjax.refinement",
    "ReplayModel": "structjax.llm.replay",
    "Sandbox": "structjax.diagnostics.sandbox",
    "Schema": "structjax.schema",
    "ScriptedModel": "structjax.llm.scripted",
    "StructjaxError": "structjax.errors",
    "StructureError": "structjax.language.parse",
    "StructuredPolicy": "structjax.policy",
    "Task": "structjax.tasks.base",
    "build_table": "structjax.table",
    "collect": "structjax.rollout",
    "evaluate": "structjax.evaluation",
    "find_transcript": "structjax.transcripts",
    "fit_anchored": "structjax.imitation",
    "fit_best": "structjax.imitation",
    "initial_values": "structjax.policy",
    "lint": "structjax.linting.lint",
    "load_demonstration": "structjax.demonstration",
    "load_policy": "structjax.policy_file",
    "make_task": "structjax.tasks.registry",
    "parse": "structjax.language.parse",
    "refine": "structjax.session",
    "render": "structjax.language.render",
    "run_invariants": "structjax.diagnostics.invariants",
    "task_from_gymnax": "structjax.tasks.adapters.gymnax",
    "variables_from": "structjax.policy",
    "weights": "structjax.policy",
}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'structjax' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return __all__
