"""Records car_racing.json from Gymnasium's simulator: `python record_car_racing.py`.

Run it from the repository's root with `PYTHONPATH=.:tests` and the extra `original`.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
from simple_driver import drive

from structjax.original.car_racing import OriginalCarRacing

STEPS = 400
MARKS = (1, 50, 100, 200, 300, 400)


def record(seed: int, noise: float) -> dict[str, Any]:
    """One episode; actions in 1/64, so that JSON holds them exactly."""
    rng = np.random.default_rng(seed)
    env = OriginalCarRacing()
    obs = env.reset(seed)
    actions, total, marks = [], 0.0, []
    for step in range(1, STEPS + 1):
        wanted = drive(obs) + noise * rng.normal(size=3)
        action = np.rint(64 * np.clip(wanted, [-1, 0, 0], [1, 1, 1])).astype(int)
        actions.append(action.tolist())
        result = env.step(action / 64)
        obs, total = result.obs, total + result.reward
        if step in MARKS:
            hull = env.simulator.car.hull
            pose = [*hull.position, hull.angle]
            marks.append(
                {
                    "step": step,
                    "pose": [round(float(v), 5) for v in pose],
                    "return": round(total, 4),
                    "obs": [round(float(v), 5) for v in obs],
                }
            )
    return {"seed": seed, "actions_64": actions, "marks": marks}


if __name__ == "__main__":
    data = {
        "source": "Gymnasium 1.3.0 CarRacing-v3 on Box2D 2.3.10, not structjax's own "
        "simulator; recorded by record_car_racing.py",
        "episodes": [record(2005, 0.0), record(2006, 0.2)],
    }
    text = json.dumps(data, separators=(",", ":"))
    Path(__file__).with_name("car_racing.json").write_text(text + "\n")
