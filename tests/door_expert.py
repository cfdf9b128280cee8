"""What Meta-World's scripted expert does, for backends that it is tried in."""

import numpy as np


def expert(obs):
    """Actions `[B, 4]` for observations `[B, 39]`: above the handle, beside, pull."""
    hand, handle = obs[:, :3], obs[:, 4:7]
    far = np.linalg.norm(hand[:, :2] - handle[:, :2] + [0.05, 0.0], axis=1) > 0.12
    high = np.abs(hand[:, 2] - handle[:, 2]) > 0.04
    beside = np.where(high[:, None], [0.01, 0.02, 0.0], [-0.05, 0.0, 0.0])
    place = handle + np.where(far[:, None], [0.01, 0.02, 0.2], beside)
    grip = np.ones((len(obs), 1))
    action = np.concatenate([25.0 * (place - hand), grip], axis=1)
    return np.clip(action, -1.0, 1.0).astype(np.float32)
