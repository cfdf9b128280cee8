"""What the structure language costs: reading, compiling, fitting, unused memory.

    python benchmarks/language.py [--repeats 9]

- reading: parse, lint and lower a program of 60 latents; target 0.5 s beside XLA's own
  compile (`reading.py` has texts at the limits);
- restarts: a fit of 64 restarts against one, warm; target at most 8 times as long. An
  update of one restart takes 64 us of CPU time. 46 of them are the same for any number
  (minibatch, what depends on no weight), each restart adds 18: 300 kFLOP at 17 GFLOP/s.
  So 64 take 19 times the CPU time of one for a quarter of the updates, and the 16 that
  go on 5 times for the rest: 8.6 times in all;
- memory: the rollout of a program without memory against the same scan written without
  the feature; target at least 0.98 times as fast.
"""

import argparse
import random
import time

import jax
import jax.numpy as jnp
from environment import load
from rows import measure, median, write_rows

from structjax.demonstration import load_demonstration
from structjax.imitation import fit_best
from structjax.language.lint.static import static_problems
from structjax.language.parse import parse
from structjax.likelihood import ImitationConfig
from structjax.policy import StructuredPolicy, initial_values, variables_from
from structjax.rollout import rollout
from structjax.tasks.car_racing.schema import CAR_RACING_SCHEMA


def program_of(latents: int) -> str:
    """Sixty distinct lines of the kind that models write."""
    forms = (
        "clip(w * {a} - {b}, -1, 1)",
        "{a} + 0.5 * {b}",
        "where({a} > {b}, {a}, -{b})",
        "relu({a}) - abs({b}) * obs.speed",
        "mean(obs.tiles.x[0:6]) * {a}",
        "sqrt(square({a}) + square({b}))",
    )
    chance = random.Random(0)
    lines = ["x0 = w * obs.speed", "x1 = obs.yaw_rate"]
    for i in range(2, latents):
        pair = {"a": f"x{i - 1}", "b": f"x{chance.randrange(max(0, i - 6), i)}"}
        lines.append(f"x{i} = " + chance.choice(forms).format(**pair))
    body = "".join(f"    {line}\n" for line in lines)
    last = f"x{latents - 1}"
    heads = f"steer=normal({last}), gas=normal({last}), brake=normal(x1)"
    return f"w = weight(0.5)\n\n\ndef policy(obs):\n{body}    return action({heads})\n"


def reading() -> list[dict]:
    """Sixty latents, from text to XLA."""
    started = time.perf_counter()
    program = parse(program_of(60), CAR_RACING_SCHEMA)
    parsed = time.perf_counter()
    static_problems(program, CAR_RACING_SCHEMA)
    linted = time.perf_counter()
    structure = program.structure
    policy = StructuredPolicy(structure, CAR_RACING_SCHEMA)
    variables = variables_from(structure, initial_values(structure))
    obs = jnp.zeros(CAR_RACING_SCHEMA.observation_size)
    lowered = jax.jit(policy.apply).lower(variables, obs)
    done = time.perf_counter()
    lowered.compile()
    row = {
        "arm": "60 latents",
        "parse_s": parsed - started,
        "lint_s": linted - parsed,
        "lower_s": done - linted,
        "compile_s": time.perf_counter() - done,
    }
    print(
        f"60 latents: parse {row['parse_s']:.3f} s, lint {row['lint_s']:.3f} s, "
        f"lower {row['lower_s']:.2f} s, XLA {row['compile_s']:.2f} s"
    )
    return [row]


def restarts(repeats: int) -> list[dict]:
    """Warm fits of one and of 64 restarts, in turn."""
    task, policy, _ = load("r3")
    demonstration = load_demonstration("car_racing/human_1", task.schema)
    rows, ratios = [], []
    arms = {r: ImitationConfig(restarts=r, num_updates=200) for r in (1, 64)}
    for turn in range(repeats + 1):
        seconds = {}
        for count, config in arms.items():

            def work(config=config) -> None:
                data = demonstration.observations, demonstration.actions
                fit_best(policy, *data, config=config, key=jax.random.key(0))

            timing = measure(work, 1, warm=turn == 0)[0]
            seconds[count] = timing["wall_s"]
            rows.append({"arm": f"{count} restarts", "turn": turn, **timing})
        if turn:
            ratios.append(seconds[64] / seconds[1])
    print(f"64 restarts take {median(ratios):.1f} times as long as one")
    return rows


def without_memory(policy, variables, task, params, starts, key):  # type: ignore[no-untyped-def]
    """Returns of a mean-action rollout, as written before programs had memory."""

    def episode(start, key):  # type: ignore[no-untyped-def]
        obs, state = task.reset(start, params)

        def body(carry, key):  # type: ignore[no-untyped-def]
            obs, state, alive = carry
            _, key_step = jax.random.split(key)
            distribution, _ = policy.apply(variables, obs)
            low, high = task.schema.action_low, task.schema.action_high
            action = jnp.clip(distribution.mode(), low, high)
            step = task.step(key_step, state, action, params)
            reward = jnp.where(alive, step.reward, 0.0)
            alive = alive & ~(step.terminated | step.truncated)
            return (step.obs, step.state, alive), reward

        keys = jax.random.split(key, task.horizon)
        carry = (obs, state, jnp.array(True))
        return jax.lax.scan(body, carry, keys)[1].sum(0)

    batch = jax.tree.leaves(starts)[0].shape[0]
    return jax.vmap(episode)(starts, jax.random.split(key, batch))


def memory(repeats: int) -> list[dict]:
    """The same program through both scans, in turn."""
    task, policy, variables = load("r3")
    params, starts = task.initial(task.seeds["training"][:64])
    key = jax.random.key(0)
    arms = {
        "with the feature": jax.jit(
            lambda v: rollout(policy, v, task, params, starts, key=key).reward.sum(0)
        ),
        "without": jax.jit(
            lambda v: without_memory(policy, v, task, params, starts, key)
        ),
    }
    rows: list[dict] = []
    ratios = []
    for turn in range(repeats + 1):
        seconds = {}
        for name, function in arms.items():

            def work(function=function) -> None:
                jax.block_until_ready(function(variables))

            timing = measure(work, 1, warm=turn == 0)[0]
            seconds[name] = timing["cpu_s"]
            rows.append({"arm": f"memory: {name}", "turn": turn, **timing})
        if turn:
            ratios.append(seconds["without"] / seconds["with the feature"])
    print(
        f"memoryless rollout: {median(ratios):.3f} times as fast as without the feature"
    )
    return rows


def main() -> None:
    """Measures all parts and writes the rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=9)
    repeats = parser.parse_args().repeats
    rows = [*reading(), *memory(repeats), *restarts(min(repeats, 5))]
    print(write_rows("language", rows))


if __name__ == "__main__":
    main()
