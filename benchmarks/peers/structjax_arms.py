"""structjax's own arms: the paper's window objective, the recommended one, PPO, and ES.

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

PRESETS = {"window": "paper", "group": "group", "ppo": "ppo", "es": "es"}


def prepare(kind: str, job: Job) -> Arm:
    """One of the arms on the job, compiled."""
    trainer = Trainer(kind, job)
    temp_bytes = trainer.compile()

    def run(number: int) -> Timed:
        return timed(lambda: trainer.train(number))

    updates, config = trainer.updates, trainer.config
    steps = 1 if kind == "es" else config.epochs * config.minibatches
    return Arm(
        run=run,
        returns=trainer.returns,
        env_steps=trainer.env_steps,
        gradient_steps=updates * steps,
        resets=updates * config.resets_per_update,
        temp_bytes=temp_bytes,
    )


def configuration(kind: str, job: Job) -> Any:
    """The configuration of an arm in the job's column."""
    from structjax.errors import StructjaxError
    from structjax.rl.presets import preset

    try:
        found = preset(PRESETS[kind])
    except StructjaxError as error:
        raise Unavailable(f"structjax: {error}") from error
    if job.column == "tuned":
        return _tuned(kind, found, job.environment)
    if kind == "es":
        same = settings.ES()
        return replace(
            found,
            strategy="open_es",
            population=same.members,
            episodes=1,
            sigma=same.deviation,
            sigma_end=1.0,
            learning_rate=same.learning_rate,
            learning_rate_end=1.0,
        )
    chosen = settings.ppo(job.column, job.environment)
    return replace(
        found,
        epochs=chosen.epochs,
        minibatches=chosen.minibatches if kind == "ppo" else 1,
        learning_rate=chosen.learning_rate,
        learning_rate_schedule="constant",
        gamma=chosen.gamma,
        gae_lambda=chosen.gae_lambda,
        clip_low=chosen.clip,
        clip_high=chosen.clip,
        max_grad_norm=chosen.max_grad_norm if kind == "ppo" else found.max_grad_norm,
    )


def _tuned(kind: str, found: Any, environment: str) -> Any:
    """The preset for networks; `ppo` with the numbers of the Zoo."""
    from structjax.rl.presets import preset

    if kind in ("group", "es"):
        return preset("network" if kind == "group" else "es_network")
    if kind != "ppo":
        return found
    chosen = settings.ZOO[environment]
    return replace(
        found,
        epochs=chosen.epochs,
        minibatches=20,  # one episode each
        learning_rate=chosen.learning_rate,
        gamma=chosen.gamma,
        gae_lambda=chosen.gae_lambda,
        reward_scale=0.1 if chosen.normalize else 1.0,
    )


class Trainer:
    """The trainer of one arm, called as `structjax rl` does, in one chunk."""

    def __init__(self, kind: str, job: Job, mapping: str = "vmap") -> None:
        try:
            from structjax.rl.presets import recipe
        except ImportError as error:
            raise Unavailable(f"structjax: {error}") from error
        from structjax.policy import MLPPolicy
        from structjax.tasks.classic import cartpole, pendulum

        tasks = {"Pendulum-v1": pendulum, "CartPole-v1": cartpole}
        self.job, self.mapping = job, mapping
        self.config = configuration(kind, job)
        self.task = tasks[job.environment]()
        self.policy = MLPPolicy(self.task.schema)
        each = self.config.resets_per_update
        self.updates = max(1, job.steps // (each * HORIZONS[job.environment]))
        self.recipe = recipe(
            self.policy, self.task, self.config, self.updates * each, job.seeds
        )
        self.fixed = self.recipe.algorithm, self.policy, self.task
        self.training = self.task.initial(self.task.seeds["training"])
        self.selection = self.task.initial(self.task.seeds["selection"])
        self.initial = jax.jit(jax.vmap(self._initial))
        self.judge = jax.jit(jax.vmap(self._returns))

    @property
    def env_steps(self) -> int:
        """Steps of a run, all seeds together, when episodes have full length."""
        episodes = self.job.seeds * self.updates * self.config.resets_per_update
        return episodes * HORIZONS[self.job.environment]

    def compile(self) -> int | None:
        """Compiles the run; its temporary memory in bytes."""
        from structjax.rl.trainer import train_chunk

        arguments = (*self.fixed, *self._arrays(0))
        self.program = train_chunk.lower(*arguments, mapping=self.mapping).compile()
        memory = self.program.memory_analysis()
        return None if memory is None else int(memory.temp_size_in_bytes)

    def train(self, number: int) -> tuple[Any, dict[str, jax.Array]]:
        """The algorithm's states `[seeds, ...]` and the metrics `[updates, seeds]`."""
        state, metrics, _ = self.program(*self._arrays(number))
        return state.algorithm, metrics

    def returns(self, trained: Any) -> np.ndarray:
        """Held-out returns `[seeds, 16]` of the mean, or the likeliest, action."""
        return np.asarray(self.judge(trained[0]))

    def _arrays(self, number: int) -> tuple[Any, ...]:
        """What `train_chunk` takes besides, for the seeds of one run."""
        from structjax.rl.trainer import begin, spread

        seeds = np.arange(self.job.seeds) + 1000 * number
        keys, variables = self.initial(seeds)
        state = spread(begin(self.recipe.algorithm, keys, variables), self.job.seeds)
        looks = jnp.zeros(self.updates, bool)
        return state, self.training, self.selection, self.recipe.scalars, looks

    def _initial(self, seed: jax.Array) -> tuple[jax.Array, Any]:
        """Key and first weights of a training seed."""
        key, subkey = jax.random.split(jax.random.key(seed))
        obs = jnp.zeros(self.task.schema.observation_size)
        return key, self.policy.init(subkey, obs)

    def _returns(self, state: Any) -> jax.Array:
        variables = self.recipe.algorithm.variables(state)

        def act(obs: jax.Array) -> jax.Array:
            return self.policy.apply(variables, obs)[0].mode()

        return episode_returns(self.job.environment, act)
