"""structjax's own arms: the paper's window objective, the recommended one, PPO.

In `matched` and `full-batch`, epochs, learning rate, gamma and clip are the peers' and
`window` and `group` take one Adam step an epoch, as they are meant to; `ppo` takes as
many as the peers'. In `tuned`, `window` is the preset `paper` and `group` the preset of
that name, whatever the task. Not like for like: training starts come from the task's
bank of 512, and episodes are not reset inside an update.
"""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from peers import settings
from peers.arm import Arm, Job, Timed, Unavailable, timed
from peers.gymnax_env import HORIZONS, episode_returns

KINDS = {"window": "paper", "group": "group", "ppo": "ppo"}


def prepare(kind: str, job: Job) -> Arm:
    """One of the three arms on the job, compiled."""
    trainer = Trainer(kind, job)
    program, temp_bytes = trainer.compiled(job.seeds)

    def run(number: int) -> Timed:
        return timed(lambda: program(trainer.keys(number, job.seeds)))

    updates, config = trainer.updates, trainer.config
    return Arm(
        run=run,
        returns=trainer.returns,
        env_steps=job.seeds * updates * trainer.batch,
        gradient_steps=updates * config.epochs * config.minibatches,
        resets=updates * config.resets_per_update,
        temp_bytes=temp_bytes,
    )


def recipe(kind: str, job: Job) -> Any:
    """The configuration of an arm in the job's column."""
    from structjax.rl.config import PRESETS

    preset = PRESETS[KINDS[kind]]
    if job.column == "tuned":
        return _ppo_of_zoo(preset, job) if kind == "ppo" else preset
    chosen = settings.ppo(job.column, settings.MATCHED)
    return replace(
        preset,
        epochs=chosen.epochs,
        minibatches=chosen.minibatches if kind == "ppo" else 1,
        learning_rate=chosen.learning_rate,
        learning_rate_schedule="constant",
        gamma=chosen.gamma,
        gae_lambda=chosen.gae_lambda,
        clip_low=chosen.clip,
        clip_high=chosen.clip,
        max_grad_norm=chosen.max_grad_norm if kind == "ppo" else preset.max_grad_norm,
    )


def _ppo_of_zoo(preset: Any, job: Job) -> Any:
    """The Zoo's numbers where whole episodes allow them: 20 of them an update."""
    chosen = settings.ZOO[job.environment]
    return replace(
        preset,
        epochs=chosen.epochs,
        minibatches=20,
        learning_rate=chosen.learning_rate,
        gamma=chosen.gamma,
        gae_lambda=chosen.gae_lambda,
        reward_scale=0.1,
    )


class Trainer:
    """The trainer of one arm, as a function of the keys of its training seeds."""

    def __init__(self, kind: str, job: Job) -> None:
        try:
            from structjax.rl.gradient import PolicyGradient
        except ImportError as error:
            raise Unavailable(f"structjax: {error}") from error
        from structjax.policy import MLPPolicy
        from structjax.tasks.classic import cartpole, pendulum

        self.job = job
        self.config = recipe(kind, job)
        self.task = {"Pendulum-v1": pendulum, "CartPole-v1": cartpole}[
            job.environment
        ]()
        self.policy = MLPPolicy(self.task.schema)
        self.batch = self.config.resets_per_update * HORIZONS[job.environment]
        self.updates = max(1, job.steps // self.batch)
        self.algorithm = PolicyGradient(
            self.policy, self.task, self.config, self.updates
        )
        self.training = self.task.initial(self.task.seeds["training"])
        self.selection = self.task.initial(list(self.task.seeds["selection"])[:1])
        self.judge = jax.jit(jax.vmap(self._returns))

    def keys(self, number: int, seeds: int) -> jax.Array:
        """The keys of the training seeds of one run, `[seeds]`."""
        return jax.vmap(jax.random.key)(np.arange(seeds) + 1000 * number)

    def train(self, keys: jax.Array) -> tuple[Any, dict[str, jax.Array]]:
        """Trained variables `[seeds, ...]` and the metrics of all updates."""
        from structjax.rl.config import scalars
        from structjax.rl.trainer import begin, repeat, train_chunk

        seeds = keys.shape[0]
        pairs = jax.vmap(jax.random.split)(keys)
        first = jnp.zeros(self.task.schema.observation_size)
        variables = jax.vmap(lambda key: self.policy.init(key, first))(pairs[:, 0])
        state, metrics, _ = train_chunk(
            self.algorithm,
            self.policy,
            self.task,
            begin(self.algorithm, pairs[:, 1], variables),
            self.training,
            self.selection,
            repeat(scalars(self.config), seeds),
            jnp.zeros(self.updates, bool),
        )
        return jax.vmap(self.algorithm.variables)(state.algorithm), metrics

    def compiled(self, seeds: int) -> tuple[Any, int | None]:
        """The whole run as one program, and its temporary memory."""
        done = jax.jit(self.train).lower(self.keys(0, seeds)).compile()
        memory = done.memory_analysis()
        return done, None if memory is None else int(memory.temp_size_in_bytes)

    def returns(self, trained: Any) -> np.ndarray:
        """Held-out returns `[seeds, 16]` of the mean, or the likeliest, action."""
        return np.asarray(self.judge(trained[0]))

    def _returns(self, variables: Any) -> jax.Array:
        def act(obs: jax.Array) -> jax.Array:
            return self.policy.apply(variables, obs)[0].mode()

        return episode_returns(self.job.environment, act)
