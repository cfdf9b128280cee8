"""Records the fixture `metaworld_states.npz`; needs the extra `metaworld`.

The first steps of three episodes of Meta-World's scripted expert: a test door that it
opens, the one that it fails at, and a door of another seed with noise on its actions
and a gripper that opens and closes.
"""

from pathlib import Path

import numpy as np

from structjax.original.door_demonstrations import scripted_expert
from structjax.original.door_open import OriginalDoorOpen, run_episode

FILE = Path(__file__).parent.parent / "fixtures" / "metaworld_states.npz"
STEPS = 220
SEEDS = (1000, 1005, 4000)
NOISY = 4000


def policy(seed):
    """The expert, disturbed on the last seed."""
    expert, rng = scripted_expert(), np.random.default_rng(0)

    def act(obs):
        action = expert(obs)
        if seed != NOISY:
            return action
        noise = np.array([0.3, 0.3, 0.3, 0.0]) * rng.standard_normal(4)
        action = action + noise
        action[3] = rng.uniform(-1, 1)
        return action

    return act


def main():
    """Writes the file."""
    env = OriginalDoorOpen()
    episodes = [run_episode(env, seed, policy(seed), STEPS) for seed in SEEDS]
    states = [episode.states for episode in episodes]
    np.savez_compressed(
        FILE,
        seed=np.array(SEEDS),
        hand=np.array([[s.hand for s in row] for row in states]),
        opening=np.array([[s.opening for s in row] for row in states]),
        theta=np.array([[s.theta for s in row] for row in states]),
        target=np.array([[s.target for s in row] for row in states]),
        door=np.array([row[0].door for row in states]),
        action=np.array([e.actions for e in episodes]),
        observation=np.array([e.observations for e in episodes]),
        reward=np.array([e.rewards for e in episodes]),
        success=np.array([e.info["success"] for e in episodes]),
        distance=np.array([e.info["distance"] for e in episodes]),
    )
    print(FILE.stat().st_size, "bytes")


if __name__ == "__main__":
    main()
