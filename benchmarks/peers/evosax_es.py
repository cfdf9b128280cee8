"""evosax 0.3.2's OpenES on the mean of the same 2x64 tanh network.

Not like for like: it has no likelihood and no critic, and takes one optimiser step an
update. All columns are one: nothing is published for these environments, and none of
six settings (20 to 200 members, rates 0.01 to 0.1, deviations 0.05 to 0.3) came past
-880 on Pendulum in 400,000 steps.
"""

from typing import Any

import gymnax
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import linen as nn

from peers.arm import Arm, Job, Unavailable, compiled, keys_of, timed
from peers.gymnax_env import HORIZONS, discrete, episode_returns
from peers.settings import ES


class Network(nn.Module):
    """2x64 tanh; outputs are the action, or the scores of the choices."""

    outputs: int

    @nn.compact
    def __call__(self, obs: jax.Array) -> jax.Array:
        """The outputs for one observation."""
        for _ in range(2):
            obs = nn.tanh(nn.Dense(64)(obs))
        return nn.Dense(self.outputs)(obs)


def prepare(job: Job) -> Arm:
    """The OpenES of evosax on the job, compiled."""
    try:
        from evosax.algorithms import Open_ES
    except ImportError as error:
        raise Unavailable(f"evosax: {error}") from error
    chosen = ES()
    environment, params = gymnax.make(job.environment)
    space = environment.action_space(params)
    network = Network(getattr(space, "n", None) or space.shape[0])
    first = jnp.zeros(environment.observation_space(params).shape)
    choose = jnp.argmax if discrete(job.environment) else lambda scores: scores
    generations = max(1, job.steps // (chosen.members * HORIZONS[job.environment]))
    strategy = Open_ES(
        chosen.members,
        network.init(jax.random.PRNGKey(0), first),
        optimizer=optax.adam(chosen.learning_rate),
        std_schedule=optax.constant_schedule(chosen.deviation),
        metrics_fn=lambda *_: {},
    )

    def act(weights: Any) -> Any:
        return lambda obs: choose(network.apply(weights, obs))

    def generation(carry: Any, _: None) -> Any:
        key, state = carry
        key, draw, play, learn = jax.random.split(key, 4)
        members, state = strategy.ask(draw, state, strategy.default_params)
        # All members of a generation meet the same start.
        returns = jax.vmap(
            lambda weights: _episode(environment, params, play, act(weights))
        )(members)
        state, _ = strategy.tell(
            learn, members, -returns, state, strategy.default_params
        )
        return (key, state), None

    def train(key: jax.Array) -> Any:
        key, draw, begin = jax.random.split(key, 3)
        weights = network.init(draw, first)
        state = strategy.init(begin, weights, strategy.default_params)
        (_, state), _ = jax.lax.scan(generation, (key, state), length=generations)
        return strategy.get_mean(state)

    program, temp_bytes = compiled(train, job.seeds)
    judge = jax.jit(
        jax.vmap(lambda weights: episode_returns(job.environment, act(weights)))
    )
    steps = generations * chosen.members * HORIZONS[job.environment]
    return Arm(
        run=lambda run: timed(lambda: program(keys_of(run, job.seeds))),
        returns=lambda trained: np.asarray(judge(trained)),
        env_steps=steps * job.seeds,
        gradient_steps=generations,
        temp_bytes=temp_bytes,
    )


def _episode(environment: Any, params: Any, key: jax.Array, act: Any) -> jax.Array:
    """The return of one episode; steps after its end count nothing."""
    obs, state = environment.reset_env(key, params)
    shape = environment.action_space(params).shape

    def step(carry: Any, _: None) -> Any:
        obs, state, alive, total = carry
        obs, state, reward, terminated, _ = environment.step_env(
            key, state, jnp.reshape(act(obs), shape), params
        )
        total = total + jnp.where(alive, jnp.reshape(reward, ()), 0.0)
        return (obs, state, alive & ~terminated, total), None

    begin = (obs, state, jnp.array(True), jnp.array(0.0))
    like = jax.eval_shape(step, begin, None)[0]
    begin = jax.tree.map(lambda leaf, kind: jnp.asarray(leaf, kind.dtype), begin, like)
    steps = HORIZONS[environment.name]
    return jax.lax.scan(step, begin, length=steps)[0][3]
