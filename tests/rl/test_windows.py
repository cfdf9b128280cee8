"""Windows of log-ratios against plain double loops in float64."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from structjax.rl.windows import bounded_ratio, window_sum, windows

T, B = 9, 4
RATIOS = ("per_step", "window_product", "window_geometric", "sequence_geometric")
LENGTHS = (9, 4, 1, 0)  # full length, ended early, one valid step, none


def looped(log_ratio, valid, ratio, window, ends):
    """O(T L): every window summed on its own."""
    steps, episodes = valid.shape
    value = np.zeros((steps, episodes))
    starts = np.zeros((steps, episodes), bool)
    for b, t in itertools.product(range(episodes), range(steps)):
        first, last = (t, t + window) if "window" in ratio else (t, t + 1)
        if ratio == "sequence_geometric":
            first, last = 0, steps
        inside = [u for u in range(first, min(last, steps)) if valid[u, b]]
        cut = "window" in ratio and ends == "full" and len(inside) < window
        if not valid[t, b] or cut:
            continue
        starts[t, b] = True
        value[t, b] = sum(np.float64(log_ratio[u, b]) for u in inside)
        if "geometric" in ratio:
            value[t, b] /= len(inside)
    return value, starts


def prefix(lengths, steps=T):
    return np.arange(steps)[:, None] < np.asarray(lengths)[None]


@pytest.mark.parametrize("ends", ["full", "truncated"])
@pytest.mark.parametrize("window", [1, 3, T, T + 4])
@pytest.mark.parametrize("ratio", RATIOS)
def test_every_window_equals_its_own_sum(ratio, window, ends):
    log_ratio = np.random.default_rng(0).normal(size=(T, B)).astype(np.float32)
    valid = prefix(LENGTHS)
    log_ratio = np.where(valid, log_ratio, np.nan)  # dead steps are not looked at
    found = windows(log_ratio, valid, ratio, window=window, ends=ends)
    value, starts = looped(log_ratio, valid, ratio, window, ends)
    np.testing.assert_array_equal(found.starts, starts)
    np.testing.assert_allclose(found.log_ratio, value, rtol=1e-5, atol=1e-6)


@settings(max_examples=40, deadline=None)
@given(
    window=st.integers(1, 14),
    lengths=st.lists(st.integers(0, 12), min_size=1, max_size=3),
    ratio=st.sampled_from(RATIOS),
    ends=st.sampled_from(["full", "truncated"]),
    seed=st.integers(0, 2**16),
)
def test_any_window_of_any_lengths(window, lengths, ratio, ends, seed):
    shape = (12, len(lengths))
    log_ratio = np.random.default_rng(seed).normal(size=shape).astype(np.float32)
    valid = prefix(lengths, 12)
    found = windows(jnp.asarray(log_ratio), valid, ratio, window=window, ends=ends)
    value, starts = looped(log_ratio, valid, ratio, window, ends)
    np.testing.assert_array_equal(found.starts, starts)
    np.testing.assert_allclose(found.log_ratio, value, rtol=1e-5, atol=1e-5)


def test_long_episodes_keep_their_digits():
    """1000 steps that drift by 0.5 each: the cumulative sum reaches 500."""
    drift = np.random.default_rng(1).normal(0.5, 1.0, (1000, 2)).astype(np.float32)
    exact = np.lib.stride_tricks.sliding_window_view(drift.astype(np.float64), 50, 0)
    found = window_sum(jnp.asarray(drift), 50)[:951]
    np.testing.assert_allclose(found, exact.sum(-1), atol=5e-4)


@pytest.mark.parametrize("ratio", RATIOS)
@pytest.mark.parametrize("size", [1e3, -1e3, 1e30, -1e30, np.inf, -np.inf])
def test_one_absurd_step_leaves_the_windows_without_it_alone(ratio, size):
    log_ratio = np.full((T, 1), 0.25, np.float32)
    log_ratio[4] = size
    valid = np.ones((T, 1), bool)
    found = windows(log_ratio, valid, ratio, window=3, ends="truncated")
    found = np.asarray(found.log_ratio)
    value, _ = looped(np.full((T, 1), 0.25), valid, ratio, 3, "truncated")
    touched = {"per_step": [4], "sequence_geometric": range(T)}.get(ratio, [2, 3, 4])
    clear = [t for t in range(T) if t not in touched]
    np.testing.assert_allclose(found[clear], value[clear], atol=2e-3)
    assert np.isfinite(found).all()
    reached = np.asarray(bounded_ratio(found[list(touched)]))
    np.testing.assert_allclose(np.log(reached), 20 * np.sign(size), rtol=1e-6)


def test_ratios_are_exact_inside_their_bound_and_flat_outside():
    value = jnp.asarray([-1e3, -19.0, 0.0, 19.0, 1e3])
    expected = np.exp([-20.0, -19.0, 0.0, 19.0, 20.0])
    np.testing.assert_allclose(bounded_ratio(value), expected, rtol=2e-6)
    slope = jax.vmap(jax.grad(bounded_ratio))(value)
    np.testing.assert_allclose(slope, expected * [0, 1, 1, 1, 0], rtol=2e-6)
