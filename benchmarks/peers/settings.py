"""Hyperparameters: the same for all (`matched`, `full-batch`), or each one's own.

`matched`: 20 environments x 200 steps an update, 4 epochs of 4 minibatches, Adam.
`full-batch`: the same with one minibatch, so that all take as many optimiser steps as a
trainer without minibatches.
`tuned`: what the peer's authors publish for the environment; adapters say where nothing
is published and what is used then.
"""

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class PPO:
    """Hyperparameters of PPO, in nobody's names."""

    environments: int = 20
    rollout: int = 200
    epochs: int = 4
    minibatches: int = 4
    learning_rate: float = 1e-3
    gamma: float = 0.95
    gae_lambda: float = 0.95
    clip: float = 0.2
    entropy: float = 0.0
    value: float = 0.5
    max_grad_norm: float = 0.5
    normalize: bool = False

    @property
    def batch(self) -> int:
        """Steps of one update."""
        return self.environments * self.rollout

    def updates(self, steps: int) -> int:
        """Whole updates in `steps` environment steps, at least one."""
        return max(1, steps // self.batch)

    def gradient_steps(self, steps: int) -> int:
        """Optimiser steps in `steps` environment steps."""
        return self.updates(steps) * self.epochs * self.minibatches


@dataclass(frozen=True)
class ES:
    """Members of a generation, its learning rate, and the deviation of its noise."""

    members: int = 20
    learning_rate: float = 1e-2
    deviation: float = 0.05


MATCHED = PPO()
# RL Baselines3 Zoo, hyperparams/ppo.yml, Pendulum-v1 (its gSDE is set by SB3's adapter)
# and CartPole-v1 (its linear schedules of learning rate and clip are not).
ZOO = {
    "Pendulum-v1": PPO(
        environments=4, rollout=1024, epochs=10, minibatches=64, gamma=0.9
    ),
    "CartPole-v1": PPO(
        environments=8, rollout=32, epochs=20, minibatches=1, gamma=0.98, gae_lambda=0.8
    ),
}
# rejax, configs/gymnax/pendulum.yaml and cartpole.yaml; its activation is not taken
# over (swish for Pendulum): every arm has 2x64 tanh.
REJAX = {
    "Pendulum-v1": PPO(
        environments=100,
        rollout=100,
        epochs=10,
        minibatches=10,
        gamma=0.995,
        max_grad_norm=10.0,
        normalize=True,
    ),
    "CartPole-v1": PPO(
        environments=5,
        rollout=100,
        epochs=5,
        minibatches=5,
        learning_rate=7.5e-4,
        gamma=0.99,
        entropy=0.01,
    ),
}


def ppo(column: str, tuned: PPO) -> PPO:
    """The hyperparameters of a column."""
    return {
        "matched": MATCHED,
        "full-batch": replace(MATCHED, minibatches=1),
        "tuned": tuned,
    }[column]
