"""Training seeds laid over several devices, in a process that has two."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np

TESTS = Path(__file__).parent.parent
SCRIPT = """
import jax, numpy as np
from rl.test_training import CONFIG, EACH, POLICY, RUNS, TASK, plan, start
from structjax.rl.trainer import begin, spread, train_chunk

plan = plan()
keys = jax.numpy.stack([jax.random.key(seed) for seed in (3, 8)])
state = spread(begin(plan.algorithm, keys, start()), RUNS)
training, selection = (TASK.initial(TASK.seeds[u]) for u in ("training", "selection"))
looks = jax.numpy.ones(2, bool)
state, _, found = train_chunk(
    plan.algorithm, POLICY, TASK, state, training, selection, plan.scalars, looks
)
print(len(found.returns.devices()), *np.asarray(found.returns).ravel())
"""


def returns(devices: int) -> tuple[int, np.ndarray]:
    """How many devices hold the returns, and the returns."""
    flags = f"--xla_force_host_platform_device_count={devices}"
    path = os.pathsep.join([str(TESTS), str(TESTS.parent)])
    found = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env=os.environ | {"XLA_FLAGS": flags, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        check=True,
    )
    used, *values = found.stdout.split()
    return int(used), np.array(values, float)


def test_two_devices_share_the_seeds_and_give_what_one_gives():
    used, both = returns(2)
    alone, one = returns(1)
    assert (used, alone) == (2, 1)
    assert len(np.unique(one)) > 10
    np.testing.assert_allclose(both, one, rtol=1e-4)
