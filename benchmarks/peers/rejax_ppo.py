"""rejax 0.1.3's PPO.

Around its breakages: `step` of gymnax 1.x gives six values, rejax unpacks five. Not
like for like: actor and critic have an optimiser each, gradients are clipped element by
element (`optax.clip`), a truncated episode counts as terminated.
"""

from typing import Any

import jax
import numpy as np

from peers import settings
from peers.arm import Arm, Job, Unavailable, compiled, keys_of, timed
from peers.gymnax_env import FiveTuple, episode_returns


def prepare(job: Job) -> Arm:
    """The PPO of rejax on the job, compiled."""
    try:
        from rejax import PPO
    except ImportError as error:
        raise Unavailable(f"rejax: {error}") from error
    chosen = settings.ppo(job.column, job.environment)
    steps = chosen.updates(job.steps) * chosen.batch
    algorithm = PPO.create(
        env=FiveTuple(job.environment),
        agent_kwargs={"activation": "tanh", "hidden_layer_sizes": (64, 64)},
        num_envs=chosen.environments,
        num_steps=chosen.rollout,
        num_epochs=chosen.epochs,
        num_minibatches=chosen.minibatches,
        learning_rate=chosen.learning_rate,
        max_grad_norm=chosen.max_grad_norm,
        gamma=chosen.gamma,
        gae_lambda=chosen.gae_lambda,
        clip_eps=chosen.clip,
        ent_coef=chosen.entropy,
        vf_coef=chosen.value,
        normalize_observations=chosen.normalize,
        normalize_rewards=chosen.normalize,
        total_timesteps=steps,
        eval_freq=steps,  # one evaluation, at the end, and that is a constant
        skip_initial_evaluation=True,
    ).replace(eval_callback=lambda algorithm, state, key: ())

    def train(key: jax.Array) -> Any:
        state, _ = algorithm.train(key)
        rms = state.obs_rms_state if chosen.normalize else ()
        return state.actor_ts.params, rms

    program, temp_bytes = compiled(train, job.seeds)
    judge = jax.jit(jax.vmap(lambda trained: _judge(algorithm, job, trained)))
    return Arm(
        run=lambda run: timed(lambda: program(keys_of(run, job.seeds))),
        returns=lambda trained: np.asarray(judge(trained)),
        env_steps=steps * job.seeds,
        gradient_steps=chosen.gradient_steps(job.steps),
        temp_bytes=temp_bytes,
    )


def _judge(algorithm: Any, job: Job, trained: Any) -> jax.Array:
    """Held-out returns `[16]` of the mean, or the likeliest, action."""
    params, rms = trained

    def act(obs: jax.Array) -> jax.Array:
        if algorithm.normalize_observations:
            obs = algorithm.normalize_obs(rms, obs)
        return algorithm.actor.apply(
            params, obs[None], method=lambda actor, x: actor._action_dist(x).mode()
        )[0]

    return episode_returns(job.environment, act)
