"""Programs that can be read but not used: told to the model, never the end of a run."""

import json

import jax
import numpy as np
import pytest
from test_refine import REPLIES, STOP, TESTS, fenced, program, run
from toy import PROGRAM, SCHEMA, toy_task

from structjax.demonstration import Demonstration
from structjax.diagnostics.invariants import run_invariants
from structjax.errors import ProgramFailed, StructjaxError
from structjax.evaluation import evaluate
from structjax.imitation import fit_best
from structjax.language.parse import parse
from structjax.llm.scripted import ScriptedModel
from structjax.policy import StructuredPolicy, initial_values, variables_from
from structjax.policy_file import loaded
from structjax.refinement import RefinementConfig
from structjax.rollout import collect, play, play_stacked
from structjax.rounds import Candidate, candidate_table
from structjax.session import refine

# exp(1000) is infinite in float32, and infinity minus itself is NaN.
HUGE = "    a = exp(1000 * (obs.x + 2))\n    return"
NAN = PROGRAM.replace("    return", HUGE).replace("(demand)", "(demand + a - a)")
FIXED = """def policy(obs):
    return action(push=normal(-0.5 * obs.x, std=fixed(0.1)))
"""


def revise(text):
    return f"Another way.\n\nACTION: revise\n\n{fenced(text)}"


def policy(text):
    structure = parse(text, SCHEMA).structure
    return StructuredPolicy(structure, SCHEMA), variables_from(
        structure, initial_values(structure)
    )


def requests(directory):
    records = map(json.loads, (directory / "llm.jsonl").read_text().splitlines())
    return {
        r["slot"]: r["req"]["messages"][-1]["content"]
        for r in records
        if r["kind"] == "request"
    }


@pytest.mark.parametrize("simulator", ["jax", "pencil"])
def test_actions_that_are_not_finite_are_no_return(simulator):
    arm = policy(NAN)
    with pytest.raises(ProgramFailed, match="action is not finite in"):
        evaluate(*arm, toy_task(), range(1000, 1004), simulator=simulator)


def test_the_steps_without_a_finite_action_are_counted():
    # Two episodes of five steps.
    with pytest.raises(ProgramFailed, match="not finite in 10 of 10 steps"):
        play(*policy(NAN), toy_task(), range(1000, 1002), key=jax.random.key(0))
    with pytest.raises(ProgramFailed, match="not finite in 10 of 10 steps"):
        collect(*policy(NAN), toy_task(), range(1000, 1002), key=jax.random.key(0))


def test_a_candidate_with_such_actions_has_no_selection_return():
    arm, variables = policy(NAN)
    stacked = jax.tree.map(lambda leaf: np.stack([leaf, leaf]), variables)
    returns = play_stacked(arm, stacked, toy_task(), range(2100, 2102))
    assert np.isnan(returns).all()


def diagnosed(text):
    task, text = toy_task(), parse(text, SCHEMA)
    found = loaded(text, initial_values(text.structure), task)
    arm = found.policy, found.variables
    key = jax.random.key(0)
    trajectory = collect(*arm, task, range(3000, 3002), key=key, check=False)
    table = candidate_table(trajectory, Candidate(0, text, found.values, {}, task))
    results = run_invariants(
        table,
        schema=SCHEMA,
        policy=found.policy,
        variables=found.variables,
        structure=text.structure,
    )
    return {result.name: result for result in results}


def test_the_invariant_finite_names_what_is_not():
    finite = diagnosed(NAN)["finite"]
    assert finite.verdict == "fail"
    assert "action_push_mean in 10 of 10 steps" in finite.text
    assert "The earliest: latent_a in row 0" in finite.text


def test_a_latent_alone_is_a_warning():
    text = PROGRAM.replace("    return", HUGE)
    results = diagnosed(text.replace("normal(demand)", "normal(demand + 0 / a)"))
    assert results["finite"].verdict == "warn"
    assert "finite" not in diagnosed(PROGRAM)
    assert "alignment" in results


def test_the_model_is_told_and_writes_another_program(tmp_path):
    replies = {
        **REPLIES,
        "round0/revise": revise(NAN),
        "round0/revise/repair1": revise(program(1.0)),
        "round1/revise": STOP,
    }
    outcome = run(tmp_path, ScriptedModel(replies))
    assert outcome.status == "stopped:model"
    assert [r.gate.accepted for r in outcome.rounds] == [True, True]
    assert outcome.best == 1
    told = requests(outcome.run)["round0/revise/repair1"]
    assert "the policy's action is not finite in 50 of 50 steps" in told
    # Resets of the failed attempt count: it was played.
    assert outcome.ledger.resets["gate"] == 30


def test_a_run_goes_on_when_it_is_resumed_after_a_failed_program(tmp_path):
    replies = {**REPLIES, "round0/revise": revise(NAN)}
    first = run(tmp_path, ScriptedModel(replies))
    assert first.status == "stopped:transcript"
    assert first.best == 0
    replies |= {"round0/revise/repair1": revise(program(1.0)), "round1/revise": STOP}
    again = run(tmp_path, ScriptedModel(replies), resume=True)
    assert again.best == 1
    assert again.ledger.resets["gate"] == 30


def test_a_model_that_writes_only_such_programs_keeps_the_best(tmp_path):
    def answer(request):
        if request.slot == "generate":
            return fenced(program(0.5))
        return TESTS if request.slot.endswith("/tests") else revise(NAN)

    outcome = run(tmp_path, ScriptedModel(answer))
    assert outcome.status == "stopped:model"
    assert outcome.best == 0
    # generate, tests, and 6 generations of 3 turns.
    assert outcome.ledger.llm_calls == 2 + 6 * 3


def test_a_first_program_may_fail(tmp_path):
    replies = {"generate": fenced(NAN), "generate/repair1": fenced(program(1.0))}
    outcome = run(tmp_path, ScriptedModel(replies | {"round0/tests": TESTS}))
    assert len(outcome.rounds) == 1


def test_a_round_whose_rollouts_fail_is_refused(tmp_path, monkeypatch):
    """The gate passes, the debug episodes do not: as if they held the fatal state."""
    from structjax import rounds

    real = rounds.collect

    def collect(policy, variables, task, seeds, **options):
        gain = float(variables["params"]["gain"])
        if seeds == task.seeds["debug"] and gain == np.float32(_raw(1.0)):
            raise ProgramFailed("the policy's action is not finite", kind="policy")
        return real(policy, variables, task, seeds, **options)

    monkeypatch.setattr(rounds, "collect", collect)
    replies = {**REPLIES, "round1/revise": revise(program(2.0)), "round2/revise": STOP}
    outcome = run(tmp_path, ScriptedModel(replies))
    assert [r.gate.accepted for r in outcome.rounds] == [True, False, True]
    assert outcome.best == 2
    told = requests(outcome.run)["round1/revise"]
    assert "The program failed in its rollouts" in told
    assert "REFUSED: it failed in its rollouts" in told
    assert "gain = weight(0.5" in told  # what the next revision starts from
    assert "REFUSED (it failed in its rollouts)" in told


def _raw(gain):
    structure = parse(PROGRAM, SCHEMA).structure
    return variables_from(structure, {"gain": gain})["params"]["gain"]


def demonstration():
    rng = np.random.default_rng(0)
    observations = np.float32(rng.uniform(-1, 1, (64, 2)))
    return Demonstration(observations, -0.5 * observations[:, :1])


def fitting(tmp_path, replies, fit, **options):
    return refine(
        toy_task(),
        ScriptedModel(replies),
        config=RefinementConfig(rounds=1, fit=fit),
        demonstration=demonstration(),
        directory=tmp_path / "run",
        **options,
    )


def test_a_failed_fit_is_told_to_the_model(tmp_path):
    replies = {
        "generate": fenced(PROGRAM),
        "round0/tests": TESTS,
        "round0/revise": revise(NAN),
        "round0/revise/repair1": revise(PROGRAM.replace("-gain", "-0.1 - gain")),
    }
    outcome = fitting(tmp_path, replies, "imitation")
    assert outcome.status == "done"
    assert len(outcome.rounds) == 2
    told = requests(outcome.run)["round0/revise/repair1"]
    assert "no restart of the fit has a finite likelihood" in told
    again = fitting(tmp_path, replies, "imitation", resume=True)
    assert again.evaluation == outcome.evaluation


@pytest.mark.parametrize("fit", ["imitation", "anchored"])
def test_a_program_without_weights_is_used_as_written(tmp_path, fit):
    replies = {"generate": fenced(FIXED), "round0/tests": TESTS}
    replies["round0/revise"] = revise(FIXED.replace("0.5", "1.0"))
    outcome = fitting(tmp_path, replies, fit)
    assert outcome.status == "done"
    assert outcome.rounds[1].candidate.values == {}
    # Gain 1, as in toy.py: -31/32 of the mean start.
    assert outcome.evaluation["mean"] == pytest.approx(-31 / 32 * 0.45)


def test_a_fit_of_nothing_is_refused_in_one_line():
    arm, _ = policy(FIXED)
    data = demonstration()
    with pytest.raises(StructjaxError, match="the program has no weights to fit"):
        fit_best(arm, data.observations, data.actions, key=jax.random.key(0))
