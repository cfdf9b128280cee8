"""Hyperparameters: the same for all (`matched`, `full-batch`), or good ones (`tuned`).

`matched`: 20 environments x 200 steps an update, 4 epochs of 4 minibatches, Adam.
`full-batch`: the same with one minibatch, so that all take as many optimiser steps as a
trainer without minibatches.
`tuned`: those of the RL Baselines3 Zoo, the only published ones that learn Pendulum
well, with each peer's own normalisers of observations and rewards (SB3: gSDE, as in the
Zoo). rejax's own for Pendulum reach about -950 in their 150,000 steps, with tanh or
swish, these -220 in 100,000; purejaxrl and brax publish none.
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
    normalize: bool = False  # observations and rewards, by the peer's own means

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
# RL Baselines3 Zoo, hyperparams/ppo.yml: Pendulum-v1, CartPole-v1 (without its linear
# schedules of learning rate and clip).
ZOO = {
    "Pendulum-v1": PPO(
        environments=4,
        rollout=1024,
        epochs=10,
        minibatches=64,
        gamma=0.9,
        normalize=True,
    ),
    "CartPole-v1": PPO(
        environments=8,
        rollout=32,
        epochs=20,
        minibatches=1,
        gamma=0.98,
        gae_lambda=0.8,
    ),
}


def ppo(column: str, environment: str) -> PPO:
    """The hyperparameters of a column."""
    return {
        "matched": MATCHED,
        "full-batch": replace(MATCHED, minibatches=1),
        "tuned": ZOO[environment],
    }[column]
