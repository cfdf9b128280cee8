"""purejaxrl's PPO (main of 2024-09), from a checkout named by `--purejaxrl PATH`.

Around its breakages: `step` of gymnax 1.x gives six values; hidden layers of 256 are
fixed in the continuous file, so the network is replaced by 2x64 tanh; actions are
clipped to +-1 there, here the environment clips. Its initial weights are normal, not
orthogonal: with jax 0.10.2 on CPUs, the vmapped run hung most times with the QR
decomposition inside (every thread of XLA waiting), and never without. Its per-step
`info`, which it stacks over the whole run, is cut down to nothing. Not like for like: a
truncated episode counts as terminated; one optimiser for actor and critic.
"""

import importlib
import sys
import types
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn

from peers import settings
from peers.arm import Arm, Job, Unavailable, compiled, keys_of, timed
from peers.gymnax_env import FiveTuple, discrete, episode_returns


class Network(nn.Module):
    """Actor and critic as in purejaxrl with 64 units, for a continuous action."""

    action_dim: int
    activation: str = "tanh"

    @nn.compact
    def __call__(self, obs: jax.Array) -> Any:
        """Distribution and value."""
        import distrax

        mean = self.tower(obs, self.action_dim, 0.01)
        log_std = self.param("log_std", nn.initializers.zeros, (self.action_dim,))
        value = self.tower(obs, 1, 1.0)
        policy = distrax.MultivariateNormalDiag(mean, jnp.exp(log_std))
        return policy, jnp.squeeze(value, axis=-1)

    @nn.nowrap
    def tower(self, obs: jax.Array, size: int, scale: float) -> jax.Array:
        """Two hidden layers and one out."""
        for _ in range(2):
            obs = nn.tanh(_dense(64, 2.0**0.5)(obs))
        return _dense(size, scale)(obs)


def _dense(size: int, scale: float) -> nn.Dense:
    kernel = nn.initializers.variance_scaling(scale**2, "fan_in", "normal")
    return nn.Dense(size, kernel_init=kernel)


def prepare(job: Job) -> Arm:
    """The PPO of purejaxrl on the job, compiled."""
    module = _load(job)
    chosen = settings.ppo(job.column, job.environment)
    make_train = module.make_train(
        {
            "ENV_NAME": job.environment,
            "NUM_ENVS": chosen.environments,
            "NUM_STEPS": chosen.rollout,
            "TOTAL_TIMESTEPS": chosen.updates(job.steps) * chosen.batch,
            "UPDATE_EPOCHS": chosen.epochs,
            "NUM_MINIBATCHES": chosen.minibatches,
            "LR": chosen.learning_rate,
            "GAMMA": chosen.gamma,
            "GAE_LAMBDA": chosen.gae_lambda,
            "CLIP_EPS": chosen.clip,
            "ENT_COEF": chosen.entropy,
            "VF_COEF": chosen.value,
            "MAX_GRAD_NORM": chosen.max_grad_norm,
            "ACTIVATION": "tanh",
            "ANNEAL_LR": False,
            "NORMALIZE_ENV": chosen.normalize,
            "DEBUG": False,
        }
    )

    def train(key: jax.Array) -> Any:
        state, environment = make_train(key)["runner_state"][:2]
        statistics = environment.env_state if chosen.normalize else None
        shift = (statistics.mean[0], statistics.var[0]) if chosen.normalize else ()
        return state.params, shift

    program, temp_bytes = compiled(train, job.seeds)
    judge = jax.jit(jax.vmap(lambda trained: _judge(module, job, trained)))
    return Arm(
        run=lambda run: timed(lambda: program(keys_of(run, job.seeds))),
        returns=lambda trained: np.asarray(judge(trained)),
        env_steps=chosen.updates(job.steps) * chosen.batch * job.seeds,
        gradient_steps=chosen.gradient_steps(job.steps),
        temp_bytes=temp_bytes,
    )


def _judge(module: Any, job: Job, trained: Any) -> jax.Array:
    """Held-out returns `[16]` of the mean, or the likeliest, action."""
    params, shift = trained
    space = FiveTuple(job.environment).action_space()
    network = module.ActorCritic(getattr(space, "n", None) or space.shape[0])

    def act(obs: jax.Array) -> jax.Array:
        if shift:
            obs = (obs - shift[0]) / jnp.sqrt(shift[1] + 1e-8)
        return network.apply(params, obs)[0].mode()

    return episode_returns(job.environment, act)


def _load(job: Job) -> Any:
    """The module of purejaxrl for the environment's kind of action, patched."""
    if job.purejaxrl is None:
        raise Unavailable("purejaxrl: name a checkout with --purejaxrl PATH")
    name = "ppo" if discrete(job.environment) else "ppo_continuous_action"
    root = Path(job.purejaxrl)
    if not (root / "purejaxrl" / f"{name}.py").exists():
        raise Unavailable(f"purejaxrl: {root} has no purejaxrl/{name}.py")
    for folder in (root, root / "purejaxrl"):
        if str(folder) not in sys.path:
            sys.path.insert(0, str(folder))
    # Imported at the head of its files, used for other environments only.
    sys.modules.setdefault("navix", types.ModuleType("navix"))
    module = importlib.import_module(f"purejaxrl.{name}")
    if name == "ppo":
        module.gymnax = types.SimpleNamespace(
            make=lambda name: (FiveTuple(name), FiveTuple(name).default_params)
        )
    else:
        module.ActorCritic = Network
        module.BraxGymnaxWrapper = FiveTuple
        module.ClipAction = lambda environment: environment
    module.LogWrapper = lambda environment: environment
    return module
