"""Programs that remember the step before: text, rollout, fit, diagnosis."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from toy import HORIZON, PROGRAM, SCHEMA, toy_task

from structjax.diagnostics.invariants import run_invariants
from structjax.evaluation import evaluate
from structjax.imitation import fit_best
from structjax.language.hashing import interface_hash, semantic_hash
from structjax.language.parse import StructureError, parse
from structjax.language.render import render
from structjax.likelihood import ImitationConfig, nll
from structjax.memory import along
from structjax.policy import StructuredPolicy, initial_values, variables_from
from structjax.rollout import collect, play, rollout
from structjax.table import build_table

# A leaky sum of x; pushes with it.
FILTER = """keep = weight(0.5, low=0.0, high=1.0)

def policy(obs):
    level = keep * previous(level, start=1.0) + obs.x
    return action(push=normal(-0.25 * level, std=fixed(0.1)))
"""
# Approaches until x < 0.3 was reached once, then pulls away with a steady force.
PHASES = """gain = weight(1.0, sign="+")
pull = weight(0.5, sign="+")

def policy(obs):
    reached = previous(reached, start=False) or obs.x < 0.3
    steps_since = where(reached, previous(steps_since, start=0) + 1.0, 0.0)
    push = pull if reached else -gain * obs.x
    return action(push=normal(push, std=fixed(0.1)))
"""


def policy_of(text):
    structure = parse(text, SCHEMA).structure
    values = variables_from(structure, initial_values(structure))
    return StructuredPolicy(structure, SCHEMA), values


def test_a_level_is_carried_through_an_episode():
    run = collect(*policy_of(FILTER), toy_task(), [1004], key=jax.random.key(0))
    x, level = 0.4, 1.0
    for step in range(HORIZON):  # x' = x + push / 2, push = -level / 4
        level = 0.5 * level + x
        assert run.latents["level"][step, 0] == pytest.approx(level, rel=1e-5)
        x = x - level / 8
        assert run.next_obs[step, 0, 0] == pytest.approx(x, rel=1e-5)


def test_phases_follow_each_other():
    run = collect(*policy_of(PHASES), toy_task(), [1008], key=jax.random.key(0))
    # 0.8, 0.4, 0.2: reached in the third step; from there x grows by 0.25 a step.
    np.testing.assert_allclose(run.obs[:, 0, 0], [0.8, 0.4, 0.2, 0.45, 0.7], rtol=1e-5)
    np.testing.assert_array_equal(run.latents["reached"][:, 0], [0, 0, 1, 1, 1])
    np.testing.assert_array_equal(run.latents["steps_since"][:, 0], [0, 0, 1, 2, 3])


def test_every_episode_begins_anew_in_both_simulators():
    policy, variables = policy_of(PHASES)
    task, seeds = toy_task(), [1008, 1001, 1008]
    returns = play(policy, variables, task, seeds, key=jax.random.key(0)).returns
    assert returns[0] == returns[2]
    original = evaluate(policy, variables, task, seeds, simulator="pencil")
    np.testing.assert_allclose(original.returns, returns, rtol=1e-5)


def test_a_recorded_table_passes_its_diagnosis():
    policy, variables = policy_of(PHASES)
    run = collect(policy, variables, toy_task(), [1008, 1005], key=jax.random.key(0))
    table = build_table(run, SCHEMA, {}, {})
    results = run_invariants(table, schema=SCHEMA, policy=policy, variables=variables)
    verdicts = {result.name: result.verdict for result in results}
    assert verdicts["alignment"] == "pass"
    # Without its memory the policy computes something else.
    frame = table.frame.assign(
        latent_reached=table.frame["latent_reached"][::-1].values
    )
    shuffled = type(table)(frame, table.columns, table.task, table.metadata)
    results = run_invariants(
        shuffled, schema=SCHEMA, policy=policy, variables=variables
    )
    assert {r.name: r.verdict for r in results}["alignment"] == "fail"


def test_a_fit_is_led_along_the_demonstration():
    # Demonstrated with keep = 0.8: only a fit that carries the level can find it.
    policy, _ = policy_of(FILTER)
    x = np.random.default_rng(0).normal(size=120)
    level, actions = 1.0, []
    for value in x:
        level = 0.8 * level + value
        actions.append([-0.25 * level])
    observations = np.stack([x, np.zeros(120)], 1)
    config = ImitationConfig(num_updates=150, restarts=1, learning_rate=0.05)
    fit = fit_best(
        policy, observations, np.array(actions), config=config, key=jax.random.key(0)
    )
    assert jax.nn.sigmoid(fit.variables["params"]["keep"]) == pytest.approx(
        0.8, abs=5e-3
    )
    assert fit.report.weights[0].live


def test_the_derivative_goes_through_time():
    policy, variables = policy_of(FILTER)
    observations = jnp.array([[0.3, 0.0], [-0.2, 0.0], [0.1, 0.0]])

    def last(raw):
        values = {"params": {"keep": raw}}
        return along(policy, values, observations)[1]["level"][-1]

    # level_3 = k^3 + 0.3 k^2 - 0.2 k + 0.1 at k = 0.5; dk/draw = k (1 - k).
    derivative = (3 * 0.25 + 0.6 * 0.5 - 0.2) * 0.25
    assert jax.grad(last)(variables["params"]["keep"]) == pytest.approx(derivative)
    assert nll(policy, variables, observations, jnp.zeros((3, 1))).shape == ()


@pytest.mark.parametrize("text", [FILTER, PHASES])
def test_programs_with_memory_print_and_read_back(text):
    structure = parse(text, SCHEMA).structure
    assert parse(render(structure), SCHEMA).structure == structure


def test_hashes_know_the_wiring_and_the_start_of_a_memory():
    renamed = FILTER.replace("level", "smooth")
    other_start = FILTER.replace("start=1.0", "start=0.5")
    memoryless = FILTER.replace("previous(level, start=1.0)", "obs.clock")
    first = parse(FILTER, SCHEMA).structure
    assert semantic_hash(parse(renamed, SCHEMA).structure) == semantic_hash(first)
    for text in (other_start, memoryless):
        other = parse(text, SCHEMA).structure
        assert semantic_hash(other) != semantic_hash(first)
        assert interface_hash(other) != interface_hash(first)


REFUSALS = {
    "previous(level)": (
        "`previous(level)` does not say what it reads and where it starts"
    ),
    "previous(obs.x, start=0)": (
        "`previous(obs.x, start=0)` does not say what it reads and where it starts"
    ),
    "previous(level, start=obs.x)": "`obs.x` is not constant",
    "previous(keep, start=0)": (
        "`previous(keep)` reads a name that `policy` does not assign"
    ),
    "previous(_part, start=0)": "`previous(_part)` reads an unlogged name",
    "previous(pair, start=0)": "`previous(pair)` reads a vector of 2",
    "previous(flag, start=0)": "`previous(flag, start=0.0)`: `flag` is a truth value",
    "previous(level, start=0) + previous(level, start=1)": (
        "`previous(level)` has two different starts"
    ),
}


@pytest.mark.parametrize("call", REFUSALS)
def test_what_cannot_be_remembered_is_refused(call):
    text = f"""keep = weight(0.5)

def policy(obs):
    flag = obs.x > 0
    pair = stack(obs.x, obs.clock)
    _part = 2 * obs.x
    level = {call} + _part + pair[0] + flag
    return action(push=normal(keep * level))
"""
    with pytest.raises(StructureError) as refused:
        parse(text, SCHEMA)
    (problem,) = refused.value.problems
    assert problem.line == 7
    assert REFUSALS[call] in problem.message


def test_a_helper_reads_no_step_before():
    text = """def old(a):
    return previous(level, start=0) + a


def policy(obs):
    level = old(obs.x)
    return action(push=normal(level))
"""
    with pytest.raises(StructureError, match="helper `old` reads the step before"):
        parse(text, SCHEMA)


def carried(text, monkeypatch):
    """How many arrays an episode's scan carries from step to step."""
    policy, variables = policy_of(text)
    task = toy_task()
    params, starts = task.initial([1004])
    counts = []
    scan = jax.lax.scan

    def counting(body, start, keys):
        counts.append(len(jax.tree.leaves(start)))
        return scan(body, start, keys)

    with monkeypatch.context() as patched:
        patched.setattr(jax.lax, "scan", counting)
        rollout(policy, variables, task, params, starts, key=jax.random.key(0))
    return counts


def test_a_program_without_memory_carries_nothing_more(monkeypatch):
    # The observation, x and time of the state, and whether the episode is alive.
    assert carried(PROGRAM, monkeypatch) == [4]
    assert carried(FILTER, monkeypatch) == [5]
    assert carried(PHASES, monkeypatch) == [6]
