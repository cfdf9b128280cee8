"""brax 0.14.2's PPO, on a gymnax environment dressed as a brax one.

Around its breakage: it calls `jax.device_put_replicated`, which jax has removed; a
stand-in is put there before brax's training is imported. Not like for like: `train` is
a host loop that compiles anew in every call, twice, and takes one seed, so a run trains
three epochs of `steps` and the third one is timed; several seeds run one after the
other. Minibatches are made of whole unrolls. It has no discrete actions.
"""

import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn

from peers import settings
from peers.arm import Arm, Job, Timed, Unavailable
from peers.gymnax_env import HORIZONS, FiveTuple, discrete, episode_returns


def prepare(job: Job) -> Arm:
    """The PPO of brax on the job; it compiles in every run."""
    if discrete(job.environment):
        raise Unavailable("brax: its PPO has no discrete actions")
    train = _import_train()
    chosen = settings.ppo(job.column, job.environment)
    steps = chosen.updates(job.steps) * chosen.batch
    environment = _environment(job.environment)

    def run(number: int) -> Timed:
        done = [
            _train(train, environment, chosen, steps, seed + 1000 * number, job)
            for seed in range(job.seeds)
        ]
        values, walls, cpus = zip(*done, strict=True)
        return Timed(list(values), sum(walls), sum(cpus))

    return Arm(
        run=run,
        returns=lambda trained: np.stack([_judge(job, one) for one in trained]),
        env_steps=steps * job.seeds,
        gradient_steps=chosen.gradient_steps(job.steps),
    )


def _import_train() -> Any:
    """The `train` of brax, with the removed function of jax put back for it."""
    if not hasattr(jax, "device_put_replicated"):
        jax.device_put_replicated = lambda tree, devices: jax.tree.map(
            lambda leaf: jnp.stack([leaf] * len(devices)), tree
        )
    try:
        from brax.training.agents.ppo import train
    except ImportError as error:
        raise Unavailable(f"brax: {error}") from error
    return train.train


def _environment(name: str) -> Any:
    """The gymnax environment as a brax environment that never resets itself."""
    from brax import envs

    inner = FiveTuple(name)
    space = inner.action_space()

    class Dressed(envs.Env):
        def reset(self, rng: jax.Array) -> Any:
            obs, state = inner.reset(rng)
            nothing = jnp.zeros(())
            return envs.State(_strong(state), obs, nothing, nothing)

        def step(self, state: Any, action: jax.Array) -> Any:
            # These dynamics draw nothing, so any key will do.
            obs, after, reward, terminated, _ = inner.inner.step_env(
                jax.random.PRNGKey(0),
                state.pipeline_state,
                action,
                inner.default_params,
            )
            return state.replace(
                pipeline_state=_strong(after),
                obs=obs,
                reward=jnp.reshape(reward, ()),
                done=jnp.asarray(terminated, jnp.float32),
            )

        observation_size = inner.observation_space().shape[0]
        action_size = space.shape[0]
        backend = "gymnax"

    return Dressed()


def _strong(state: Any) -> Any:
    """The state with plain array types: brax's scans need them equal throughout."""

    def cast(leaf: Any) -> jax.Array:
        leaf = jnp.asarray(leaf)
        whole = jnp.issubdtype(leaf.dtype, jnp.integer)
        return leaf.astype(jnp.int32 if whole else jnp.float32)

    return jax.tree.map(cast, state)


def _networks(*sizes: Any, **options: Any) -> Any:
    """2x64 tanh, a Gaussian with a state-independent deviation."""
    from brax.training.agents.ppo import networks

    return networks.make_ppo_networks(
        *sizes,
        policy_hidden_layer_sizes=(64, 64),
        value_hidden_layer_sizes=(64, 64),
        activation=nn.tanh,
        distribution_type="normal",
        noise_std_type="log",
        **options,
    )


def _train(
    train: Any, environment: Any, chosen: Any, steps: int, seed: int, job: Job
) -> Timed:
    """Three epochs of `steps`: the seconds of the third, the policy after the first."""
    marks: list[tuple[float, float]] = []
    policies: list[Any] = []

    def mark(*_: Any) -> None:
        marks.append((time.perf_counter(), time.process_time()))

    def keep(_: int, make_policy: Any, params: Any) -> None:
        policies.append(make_policy(params, deterministic=True))

    # A minibatch is whole unrolls: shorter ones where it is less than a rollout.
    unroll = min(chosen.rollout, chosen.batch // chosen.minibatches)
    train(
        environment=environment,
        num_timesteps=3 * steps,
        episode_length=HORIZONS[job.environment],
        num_envs=chosen.environments,
        unroll_length=unroll,
        batch_size=max(1, chosen.environments // chosen.minibatches),
        num_minibatches=chosen.minibatches,
        num_updates_per_batch=chosen.epochs,
        learning_rate=chosen.learning_rate,
        discounting=chosen.gamma,
        gae_lambda=chosen.gae_lambda,
        clipping_epsilon=chosen.clip,
        entropy_cost=chosen.entropy,
        vf_loss_coefficient=chosen.value,
        max_grad_norm=chosen.max_grad_norm,
        normalize_observations=chosen.normalize,
        reward_scaling=0.1 if chosen.normalize else 1.0,
        network_factory=_networks,
        seed=seed,
        num_evals=4,
        run_evals=False,
        progress_fn=mark,
        policy_params_fn=keep,
        max_devices_per_host=1,
    )
    wall, cpu = (b - a for a, b in zip(*marks[-2:], strict=True))
    return Timed(policies[1], wall, cpu)


def _judge(job: Job, policy: Any) -> np.ndarray:
    """Held-out returns `[16]` of the mean action."""
    key = jax.random.PRNGKey(0)

    @jax.jit
    def returns() -> jax.Array:
        return episode_returns(job.environment, lambda obs: policy(obs, key)[0])

    return np.asarray(returns())
