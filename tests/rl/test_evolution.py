"""Evolution strategies, against values derived by hand and a task of known optimum."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from toy import PROGRAM, _step, toy_task

from structjax.errors import StructjaxError
from structjax.language.parse import parse
from structjax.policy import MLPPolicy, StructuredPolicy, variables_from, weights
from structjax.rl.coordinates import acting, at, coordinates
from structjax.rl.evolution import (
    EVOLUTION_PRESETS,
    EvolutionConfig,
    EvolutionStrategy,
    cost,
    draw,
    evolution_scalars,
)
from structjax.rl.strategies import MIRRORED, begin_search, make_strategy, tell
from structjax.rl.trainer import begin, repeat, train_chunk

STRATEGIES = ("open_es", "pgpe", "snes", "sep_cma_es", "cma_es")
TASK = toy_task()


def start(text=PROGRAM, task=TASK):
    """A policy and its variables as written."""
    structure = parse(text, task.schema).structure
    return StructuredPolicy(structure, task.schema), variables_from(structure, {})


def recipe(strategy="open_es", **options):
    rate = 0.05 if strategy in MIRRORED else 1.0
    settings = {"population": 16, "episodes": 10, "sigma": 0.1, "learning_rate": rate}
    constant = {"learning_rate_end": 1.0}
    return EvolutionConfig(strategy=strategy, **{**settings, **constant, **options})


def trained(config, keys, updates, task=TASK, text=PROGRAM):
    """State, metrics `[U, S]` and selection returns `[S]` after some generations."""
    policy, variables = start(text, task)
    algorithm = EvolutionStrategy(policy, task, config, updates)
    runs = len(keys)
    scalars = jax.tree.map(lambda x: jnp.full(runs, x), evolution_scalars(config))
    state = begin(algorithm, keys, repeat(variables, runs))
    appraised = jnp.arange(updates) == updates - 1
    banks = (task.initial(task.seeds[use]) for use in ("training", "selection"))
    state, metrics, appraisal = train_chunk(
        algorithm, policy, task, state, *banks, scalars, appraised
    )
    reached = weights(policy, jax.vmap(algorithm.variables)(state.algorithm))
    returns = appraisal.returns[-1].mean(axis=1)
    return state, *jax.tree.map(np.asarray, (metrics, returns, reached))


def first_key():
    return jax.random.split(jax.random.key(3), 1)


@pytest.mark.parametrize("strategy", ["open_es", "snes", "cma_es"])
def test_the_optimum_is_found(strategy):
    # Gain 2 cancels the offset in one push, or in two where the push saturates: x0 of
    # 0.6 to 0.9 keeps 0.1 to 0.4 after the first. Mean return -(0.1 + .. + 0.4) / 10.
    config = recipe(strategy)
    if strategy in MIRRORED:
        config = replace(config, learning_rate=0.2, learning_rate_end=0.02)
    _, _, returns, reached = trained(config, first_key(), 60)
    assert returns == pytest.approx(-0.1, abs=2e-3)
    assert reached["gain"] == pytest.approx(2.0, abs=0.02)


def test_runs_side_by_side_equal_single_ones():
    keys = jax.random.split(jax.random.key(5), 3)
    together = trained(recipe("pgpe"), keys, 4)
    for i in range(3):
        alone = trained(recipe("pgpe"), keys[i : i + 1], 4)
        assert alone[3]["gain"][0] == pytest.approx(together[3]["gain"][i], rel=1e-5)
        np.testing.assert_allclose(
            alone[1]["return"][:, 0], together[1]["return"][:, i], rtol=1e-5
        )
    assert len(np.unique(together[3]["gain"])) == 3


def test_counts_and_returns_by_hand():
    # A sigma of nothing: every member is the program as written, of return -31/32 x0.
    # The 512 training seeds hold 0, 0.1, .. 0.9 51 times, then 0 and 0.1.
    config = recipe(population=4, episodes=512, sigma=1e-9)
    state, metrics, _, _ = trained(config, first_key(), 1)
    expected = -31 / 32 * (51 * 4.5 + 0.1) / 512
    assert metrics["return"][0, 0] == pytest.approx(expected, rel=1e-5)
    counted = {name: int(total[0]) for name, total in state.totals.items()}
    # 5 steps an episode: nothing ends it earlier.
    assert counted == {"resets": 2048, "env_steps": 10240, "gradient_steps": 1}
    assert config.resets_per_update == 2048


def test_members_of_a_generation_meet_the_same_starts():
    config = recipe(population=8, episodes=2, sigma=1e-9)
    _, metrics, _, _ = trained(config, first_key(), 4)
    np.testing.assert_allclose(metrics["return_best"], metrics["return"], rtol=1e-5)
    assert len(np.unique(metrics["return"].round(4))) > 1  # and others in the next


def test_starts_are_different_where_there_are_enough():
    _, bank = TASK.initial(range(10))
    assert sorted(draw(jax.random.key(0), bank, 10).tolist()) == sorted(bank.tolist())
    assert draw(jax.random.key(0), bank, 11).shape == (11,)


def test_a_broken_member_costs_more_than_any_other():
    returns = jnp.array([[1.0, 3.0], [-900.0, -1100.0], [5.0, jnp.nan], [jnp.inf, 0.0]])
    np.testing.assert_array_equal(cost(returns), [-2.0, 1000.0, np.inf, np.inf])


def told(name, points, costs):
    """Where the mean, at 0 with std 1, goes after one generation `[P]` on one axis."""
    strategy = make_strategy(name, len(points), 1)
    members, costs = jnp.array(points)[:, None], jnp.array(costs)
    state = begin_search(strategy)
    return float(tell(strategy, members, costs, state, jnp.float32(1)).mean[0])


def test_ranks_by_hand():
    # Pairs (1, -1) and (2, -2) with costs 1, 2, 0, 3: ranks 1, 2, 0, 3 over 3, less a
    # half, times the points: (-1/6 + 2/6 + 3/6 - 6/6) / 4 < 0. Downhill is up, and
    # Adam's first step is the rate, 1.
    assert told("open_es", [1.0, 2.0, -1.0, -2.0], [1.0, 2.0, 0.0, 3.0]) == (
        pytest.approx(1.0, rel=1e-4)
    )
    # Member 2 broken: ranks 1, 3, 0, 2, so (-1/6 + 6/6 + 3/6 - 2/6) / 4 > 0.
    assert told("open_es", [1.0, 2.0, -1.0, -2.0], [1.0, np.inf, 0.0, 3.0]) == (
        pytest.approx(-1.0, rel=1e-4)
    )


def test_the_natural_gradient_by_hand():
    # Wierstra et al. (2014), 4 members: log(3) - log(rank), not below 0, to sum 1, less
    # 1/4 each: the mean moves by the weights times the points, best first.
    raw = np.maximum(np.log(3) - np.log([1, 2, 3, 4]), 0)
    expected = (raw / raw.sum() - 0.25) @ [3.0, -1.0, 0.5, 2.0]
    points, costs = [-1.0, 3.0, 2.0, 0.5], [-5.0, -9.0, np.inf, 4.0]
    assert told("snes", points, costs) == pytest.approx(expected, rel=1e-5)


def breaking(limit):
    """The toy task with a reward that is NaN for pushes to the left beyond a limit."""

    def step(key, state, action, params):
        result = _step(key, state, action, params)
        broken = action[0] < -limit
        return result._replace(reward=jnp.where(broken, jnp.nan, result.reward))

    return toy_task(step)


def test_members_that_break_are_bred_out():
    # Some of a generation's 160 starts lie at 0.9, where a gain of 0.95 / 0.9 pushes
    # 0.95: members beyond it are broken, though their other episodes are better.
    task = breaking(0.95)
    config = recipe(episodes=160)
    _, metrics, returns, reached = trained(config, first_key(), 30, task)
    assert np.isfinite(returns).all()
    assert reached["gain"] < 0.95 / 0.9
    assert np.isfinite(metrics["return_best"]).all()


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_generation_without_survivors_moves_nothing(strategy):
    assert told(strategy, [1.0, 2.0, -1.0, -2.0], [np.inf] * 4) == 0.0
    # One survivor is better than none, and the mean goes its way.
    assert told(strategy, [1.0, 2.0, -1.0, -2.0], [np.inf] * 3 + [0.0]) < 0.0


def test_schedules_by_hand():
    # Over 3 updates sigma falls to a quarter, the rate to a ten thousandth. Adam's
    # steps are at most about the rate: 0.05, then a hundredth of that, ...
    config = recipe(sigma=0.2, sigma_end=0.25, learning_rate_end=1e-4)
    policy, variables = start()
    algorithm = EvolutionStrategy(policy, TASK, config, 3)
    state = algorithm.init(jax.random.key(0), variables)
    training = TASK.initial(TASK.seeds["training"])
    update = jax.jit(algorithm.update)
    means, sigmas = [0.0], []
    for _ in range(3):
        state, metrics = update(state, *training, evolution_scalars(config))
        means.append(float(state.search.mean[0]))
        sigmas.append(float(metrics["sigma"]))
    assert sigmas == pytest.approx([0.2, 0.1, 0.05])
    steps = np.abs(np.diff(means))
    assert steps[0] == pytest.approx(0.05, rel=1e-3)
    assert 0 < steps[1] <= 0.05e-2 * 1.01
    assert steps[2] <= 0.05e-4 * 1.01


FOUR = '''"""Weights of every kind."""

free = weight(-3.0)
small = weight(0.001)
positive = weight(40.0, sign="+")
between = weight(5.0, low=0.0, high=10.0)
spread = weight(0.3, low=0.01, high=1.0)


def policy(obs):
    demand = free * obs.x + small + positive * obs.clock + between  # all of them
    return action(push=normal(demand, spread))
'''


def test_units_by_hand():
    policy, variables = start(FOUR)
    space = coordinates(policy, variables)
    names = sorted(variables["params"])
    searched = [names[i] for i in acting(policy, variables)]
    assert searched == ["between", "free", "positive", "small"]
    # The middle of its range; its size; 40 above the bound (softplus is the identity
    # there); the least unit.
    assert space.scale.tolist() == pytest.approx([1.0, 3.0, 40.0, 0.1])
    moved = at(space, policy, variables, jnp.array([0.5, 1.0, -0.5, 2.0]))["params"]
    assert moved["between"] == pytest.approx(0.5)  # its raw value was 0
    assert moved["free"] == pytest.approx(0.0)
    assert moved["positive"] == pytest.approx(20.0)
    assert moved["small"] == pytest.approx(0.201)
    assert moved["spread"] == variables["params"]["spread"]


def test_a_network_keeps_its_std():
    policy = MLPPolicy(TASK.schema, hidden=(4,))
    variables = policy.init(jax.random.key(0), jnp.zeros(2))
    # 2 x 4 + 4 and 4 x 1 + 1 weights, and one std.
    assert len(acting(policy, variables)) == 17
    space = coordinates(policy, variables)
    moved = at(space, policy, variables, jnp.ones(17))
    changed = jax.tree.map(lambda a, b: bool((a != b).all()), moved, variables)
    assert not changed["params"].pop("std")
    assert all(jax.tree.leaves(changed))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"strategy": "xnes"}, "option strategy is 'xnes'"),
        ({"population": 2}, "option population is 2"),
        ({"strategy": "open_es", "population": 7}, "draws members in pairs"),
        ({"population": True}, "option population is True"),
        ({"episodes": 0}, "option episodes is 0"),
        ({"sigma": 0.0}, "option sigma is 0.0"),
        ({"sigma": float("nan")}, "option sigma is nan"),
        ({"sigma_end": 1.5}, "option sigma_end is 1.5"),
        ({"strategy": "snes", "sigma_end": 0.5}, "snes adapts sigma"),
        ({"learning_rate": -1.0}, "option learning_rate is -1.0"),
        ({"learning_rate_end": 0.0}, "option learning_rate_end is 0.0"),
    ],
)
def test_bad_options_are_named(options, words):
    with pytest.raises(StructjaxError, match=words):
        EvolutionConfig(**options)


def test_presets_are_static_arguments():
    for name, config in EVOLUTION_PRESETS.items():
        assert hash(config) == hash(replace(config)), name


def test_a_full_covariance_of_a_network_is_refused():
    policy = MLPPolicy(TASK.schema, (64, 64))
    obs = jnp.zeros(TASK.schema.observation_size)
    variables = policy.init(jax.random.key(0), obs)

    def begun(strategy):
        algorithm = EvolutionStrategy(policy, TASK, recipe(strategy), 1)
        return algorithm.init(jax.random.key(0), variables)

    with pytest.raises(StructjaxError, match="covariance of all weights"):
        begun("cma_es")
    assert begun("sep_cma_es").search.mean.size > 4000
