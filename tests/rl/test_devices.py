"""Training seeds laid over one, two and four devices, each in its own process."""

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
# A network on Pendulum: here `vmap` over four seeds and over two round differently.
SCRIPT = """
import sys
import jax, numpy as np
from structjax.policy import MLPPolicy
from structjax.rl.config import RLConfig
from structjax.rl.presets import recipe
from structjax.rl.trainer import begin, current, spread, train_chunk
from structjax.tasks.classic import pendulum

mapping, runs = sys.argv[1], int(sys.argv[2])
task = pendulum()
policy = MLPPolicy(task.schema, (64, 64))
config = RLConfig(groups=2, episodes=5, epochs=2, learning_rate=0.01)
algorithm, scalars = recipe(policy, task, config, 30, runs)
keys = jax.vmap(jax.random.key)(np.arange(runs))
starts = jax.vmap(policy.init, in_axes=(0, None))(
    keys, np.zeros(task.schema.observation_size)
)
state = spread(begin(algorithm, keys, starts), runs)
training, selection = (task.initial(task.seeds[u]) for u in ("training", "selection"))
looks = jax.numpy.array([True, False, True])
state, metrics, found = train_chunk(
    algorithm, policy, task, state, training, selection, scalars, looks, mapping=mapping
)
weights = current(algorithm, state, mapping=mapping)
used = {len(x.devices()) for x in jax.tree.leaves((weights, found.returns))}
found = jax.tree.map(lambda x: x.swapaxes(0, 1), found)  # the seeds first
leaves = jax.tree.leaves((found, weights, state.best))
rows = np.concatenate([np.asarray(x).reshape(runs, -1) for x in leaves], 1)
print(used.pop(), *np.nan_to_num(rows).ravel().tolist())
"""


@cache
def trained(devices: int, mapping: str, runs: int = 4) -> tuple[int, np.ndarray]:
    """How many devices hold the results, and the results, a row per training seed."""
    flags = f"--xla_force_host_platform_device_count={devices}"
    # XLA cuts a loop in as many parts as there are threads: otherwise at least one a
    # device, and four devices would round differently from two on the same cores.
    threads = {"NPROC": "4"}
    found = subprocess.run(
        [sys.executable, "-c", SCRIPT, mapping, str(runs)],
        env=os.environ | threads | {"XLA_FLAGS": flags, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        check=True,
    )
    used, *values = found.stdout.split()
    return int(used), np.array(values, float).reshape(runs, -1)


def test_two_devices_share_the_seeds_and_give_what_one_gives():
    used, both = trained(2, "vmap")
    alone, one = trained(1, "vmap")
    assert (used, alone) == (2, 1)
    first = np.s_[:, :10]  # the selection episodes after one update
    assert len(np.unique(one[first])) == 40
    np.testing.assert_allclose(both[first], one[first], rtol=1e-3)


@pytest.mark.parametrize("devices", [2, 4])
def test_mapped_one_after_the_other_they_give_the_same_bits(devices):
    used, several = trained(devices, "map")
    _, one = trained(1, "map")
    assert used == devices
    np.testing.assert_array_equal(several, one)


def test_mapped_one_after_the_other_a_seed_has_the_bits_that_it_has_alone():
    _, alone = trained(1, "map", runs=1)
    _, four = trained(1, "map")
    assert not np.array_equal(four[0], four[1])
    np.testing.assert_array_equal(alone[0], four[0])
