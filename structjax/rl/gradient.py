"""Policy gradients on sampled episodes: group objectives, PPO and REINFORCE."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import lax

from structjax.errors import StructjaxError
from structjax.rl.advantages import gae, group_advantages, standardised
from structjax.rl.batch import Batch, draw_starts, judge, play_batch, update_keys
from structjax.rl.config import RLConfig, Scalars
from structjax.rl.critic import init_critic, values
from structjax.rl.objective import Surrogate, surrogate
from structjax.rollout import Policy
from structjax.tasks.base import Task

ADAM = optax.scale_by_adam()
RECOVERY = 1.15
"""Growth of the step size, up to the configured one, after a look without a fall."""
METRICS = ("clip_share", "ess", "kl", "entropy", "max_log_ratio")


class GradientState(NamedTuple):
    """Everything that the next update depends on.

    Attributes:
      key: consumed and replaced by every update.
      update: updates done, int32.
      learned: `{"policy": variables, "critic": ...}`; the critic only with `gae`.
      adam: moments of the same shape.
      caution: factor of the step size, halved by every return to the best.
    """

    key: jax.Array
    update: jax.Array
    learned: dict[str, Any]
    adam: Any
    caution: jax.Array


class Lesson(NamedTuple):
    """A batch with what the objective compares it to, `[T, B]` each but `batch`."""

    batch: Batch
    old_log_prob: jax.Array
    advantage: jax.Array
    value_target: jax.Array


class Pass(NamedTuple):
    """What is carried from one gradient step to the next."""

    learned: Any
    adam: Any
    running: jax.Array
    steps: jax.Array


@dataclass(frozen=True)
class PolicyGradient:
    """The clipped surrogate with the advantage and ratio of a configuration.

    Attributes:
      policy: structured or MLP.
      task: where it is trained.
      config: the recipe.
      updates: planned updates, over which the schedules fall.
    """

    policy: Policy
    task: Task
    config: RLConfig
    updates: int

    def __post_init__(self) -> None:
        """Checks that windows fit into episodes.

        Raises:
          StructjaxError: no full window could ever start.
        """
        config, horizon = self.config, self.task.horizon
        windowed = config.ratio in ("window_product", "window_geometric")
        if windowed and config.window_ends == "full" and config.window > horizon:
            raise StructjaxError(
                f"windows of {config.window} steps never end within the {horizon} "
                f"steps of task {self.task.name!r}: nothing would be learned",
                kind="options",
                hint=f"window of at most {horizon}, or window_ends truncated",
            )

    @property
    def resets_per_update(self) -> int:
        """Episodes that one update plays."""
        return self.config.resets_per_update

    def init(self, key: jax.Array, variables: Any) -> GradientState:
        """The state before the first update."""
        key, critic_key = jax.random.split(key)
        learned = {"policy": variables}
        if self.config.advantage == "gae":
            size = self.task.schema.observation_size
            learned["critic"] = init_critic(critic_key, size)
        adam = ADAM.init(learned)
        return GradientState(key, jnp.int32(0), learned, adam, jnp.float32(1))

    def looked(
        self,
        state: GradientState,
        variables: Any,
        deficit: jax.Array,
        scalars: Scalars,
    ) -> GradientState:
        """Goes back to the best variables, more carefully, after too deep a fall.

        What is rewarded soon (speed) can cost later (a spin, a lap that never ends):
        the episodes of one update do not show it, the selection episodes do.
        """
        fell = (scalars.fall > 0) & (deficit > scalars.fall)
        learned = {**state.learned, "policy": variables}
        again = state._replace(
            learned=learned, adam=ADAM.init(learned), caution=state.caution / 2
        )
        bolder = jnp.minimum(state.caution * RECOVERY, 1.0)
        looked = jnp.isfinite(deficit) & ~fell
        on = state._replace(caution=jnp.where(looked, bolder, state.caution))
        return jax.tree.map(lambda new, old: _where(fell, new, old), again, on)

    def variables(self, state: GradientState) -> Any:
        """The policy's variables."""
        return state.learned["policy"]

    def update(
        self, state: GradientState, params: Any, bank: Any, scalars: Scalars
    ) -> tuple[GradientState, dict[str, jax.Array]]:
        """Plays the episodes of one update and learns from them."""
        batch = self.collect(state, params, bank)
        return self.update_from(state, batch, scalars)

    def collect(self, state: GradientState, params: Any, bank: Any) -> Batch:
        """The episodes of the next update, with sampled actions."""
        keys = update_keys(state.key)
        starts = draw_starts(keys.starts, bank, self.config)
        variables = state.learned["policy"]
        return play_batch(self.policy, variables, self.task, params, starts, keys.play)

    def update_from(
        self, state: GradientState, batch: Batch, scalars: Scalars
    ) -> tuple[GradientState, dict[str, jax.Array]]:
        """Learns from the episodes of one update, wherever they were played."""
        keys = update_keys(state.key)
        lesson = self.prepare(state.learned, batch, scalars)
        done, trace = self._learn(state, lesson, scalars, keys.order)
        metrics = {
            "resets": jnp.int32(batch.reward.shape[1]),
            "env_steps": jnp.sum(batch.valid, dtype=jnp.int32),
            "gradient_steps": done.steps,
            "return": jnp.mean(jnp.sum(batch.reward, axis=0)),
            **{name: value[-1] for name, value in trace.items()},
        }
        state = state._replace(
            key=keys.state,
            update=state.update + 1,
            learned=done.learned,
            adam=done.adam,
        )
        return state, metrics

    def prepare(self, learned: Any, batch: Batch, scalars: Scalars) -> Lesson:
        """Old log-probabilities, advantages and value targets of a batch."""
        old = judge(self.policy, learned["policy"], batch).log_prob
        if self.config.advantage == "gae":
            advantage, target = self._critic_advantages(learned, batch, scalars)
        else:
            advantage = group_advantages(
                batch.reward,
                batch.valid,
                batch.terminated,
                self.config.advantage,
                episodes=self.config.episodes,
                grouping=self.config.grouping,
                gamma=scalars.gamma,
                floor=scalars.advantage_floor,
            )
            target = jnp.zeros_like(advantage)
        return lax.stop_gradient(Lesson(batch, old, advantage, target))

    def _critic_advantages(
        self, learned: Any, batch: Batch, scalars: Scalars
    ) -> tuple[jax.Array, jax.Array]:
        """Standardised estimates and the values that the critic is to learn."""
        value = values(learned["critic"], batch.obs)
        # Nothing resets an episode, so what follows a step is the next row.
        last = values(learned["critic"], batch.last_obs)
        estimate = gae(
            batch.reward * self.config.reward_scale,
            value,
            jnp.concatenate([value[1:], last[None]]),
            batch.valid,
            batch.terminated,
            gamma=scalars.gamma,
            decay=scalars.gae_lambda,
        )
        return standardised(estimate, batch.valid), estimate + value

    def _learn(
        self, state: GradientState, lesson: Lesson, scalars: Scalars, key: jax.Array
    ) -> tuple[Pass, dict[str, jax.Array]]:
        """`epochs * minibatches` Adam steps; metrics `[steps]` by name."""
        rate = (
            scalars.learning_rate
            * state.caution
            * self._falling(state.update, self.config.learning_rate_schedule)
        )
        entropy = scalars.entropy * self._falling(
            state.update, self.config.entropy_schedule
        )

        def step(carry: Pass, part: Any) -> tuple[Pass, dict[str, jax.Array]]:
            share = lesson if part is None else _share(lesson, part)
            return self._step(carry, share, scalars, rate, entropy)

        begin = Pass(state.learned, state.adam, jnp.array(True), jnp.int32(0))
        parts = self._parts(key)
        length = self.config.epochs * self.config.minibatches
        return lax.scan(step, begin, parts, length=length)

    def _parts(self, key: jax.Array) -> jax.Array | None:
        """The episodes of each gradient step, `[steps, B / minibatches]`."""
        config = self.config
        if config.minibatches == 1:
            return None
        episodes = jnp.arange(config.resets_per_update)
        keys = jax.random.split(key, config.epochs)
        orders = jax.vmap(jax.random.permutation, in_axes=(0, None))(keys, episodes)
        return orders.reshape(config.epochs * config.minibatches, -1)

    def _falling(self, update: jax.Array, schedule: str) -> jax.Array:
        """1, or what is left of it when it falls to 0 over the planned updates."""
        if schedule == "constant":
            return jnp.float32(1)
        return jnp.maximum(1.0 - update.astype(jnp.float32) / self.updates, 0.0)

    def _step(
        self,
        carry: Pass,
        lesson: Lesson,
        scalars: Scalars,
        rate: jax.Array,
        entropy: jax.Array,
    ) -> tuple[Pass, dict[str, jax.Array]]:
        """One Adam step, unless the policy has moved too far already."""

        def loss(learned: Any) -> tuple[jax.Array, Surrogate]:
            return self.loss(learned, lesson, scalars, entropy)

        (_, found), gradient = jax.value_and_grad(loss, has_aux=True)(carry.learned)
        norm = optax.tree.norm(gradient)
        near = (scalars.kl_stop <= 0) | (found.kl <= scalars.kl_stop)
        running = carry.running & near
        # A gradient that is not finite teaches nothing and would end the run.
        moves = running & jnp.isfinite(norm)
        limit = jnp.where(scalars.max_grad_norm > 0, scalars.max_grad_norm, jnp.inf)
        scale = jnp.minimum(1.0, limit / jnp.maximum(norm, 1e-30))
        gradient = jax.tree.map(lambda g: jnp.where(moves, g * scale, 0.0), gradient)
        direction, adam = ADAM.update(gradient, carry.adam)
        learned = jax.tree.map(lambda x, d: x - rate * d, carry.learned, direction)
        kept = (carry.learned, carry.adam)
        learned, adam = jax.tree.map(
            lambda new, old: jnp.where(moves, new, old), (learned, adam), kept
        )
        metrics = {name: getattr(found, name) for name in METRICS}
        metrics |= {"grad_norm": norm}
        return Pass(learned, adam, running, carry.steps + moves), metrics

    def loss(
        self, learned: Any, lesson: Lesson, scalars: Scalars, entropy: jax.Array
    ) -> tuple[jax.Array, Surrogate]:
        """What Adam lowers: minus the objective, and the critic's error."""
        batch = lesson.batch
        steps = judge(self.policy, learned["policy"], batch)
        found = surrogate(
            steps,
            lesson.old_log_prob,
            lesson.advantage,
            batch.valid,
            config=self.config,
            scalars=scalars,
            entropy=entropy,
        )
        loss = -found.objective
        if "critic" in learned:
            error = values(learned["critic"], batch.seen) - lesson.value_target
            squares = jnp.sum(jnp.where(batch.valid, error, 0.0) ** 2)
            count = jnp.maximum(jnp.sum(batch.valid), 1)
            loss = loss + self.config.value_coefficient * squares / count
        return loss, found


def _where(condition: jax.Array, new: Any, old: Any) -> Any:
    """`jnp.where` that also takes random keys, which are the same in both."""
    if jnp.issubdtype(old.dtype, jax.dtypes.prng_key):
        return old
    return jnp.where(condition, new, old)


def _share(lesson: Lesson, episodes: jax.Array) -> Lesson:
    """The lesson of some of the episodes."""

    def take(leaf: jax.Array) -> jax.Array:
        return jnp.take(leaf, episodes, axis=1)

    batch = lesson.batch
    steps = {name: take(getattr(batch, name)) for name in batch._fields[:-1]}
    part = batch._replace(**steps, last_obs=batch.last_obs[episodes])
    return Lesson(part, *map(take, lesson[1:]))
