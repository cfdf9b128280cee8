"""Tracks against Gymnasium's own generator, and kerbs against hand-made bends."""

import numpy as np
import pytest

from structjax.tasks.car_racing import track as track_module
from structjax.tasks.car_racing.track import kerbs, make_track

# Tile counts of gymnasium 1.3's CarRacing-v3, seeds 1000-1009.
TILES = (293, 312, 275, 300, 298, 326, 280, 309, 316, 270)


def test_tile_counts_are_gymnasiums():
    assert tuple(make_track(seed).n for seed in range(1000, 1010)) == TILES


def test_a_track_is_a_function_of_its_seed():
    first, again = make_track(1003), make_track(1003)
    for a, b in zip(first, again, strict=True):
        np.testing.assert_array_equal(a, b)
    assert not np.array_equal(first.x, make_track(1007).x[: first.n])


def test_nodes_are_a_step_apart_and_head_along_the_road():
    track = make_track(1000)
    leap = np.stack([np.diff(track.x), np.diff(track.y)], 1)
    np.testing.assert_allclose(np.linalg.norm(leap, axis=1), 3.5, atol=1e-9)
    # The stored heading is the mean of those before and after the turn, which is at
    # most 0.31 rad, and the step follows the earlier one: cos >= cos(0.31 / 2).
    forward = np.stack([-np.sin(track.beta[1:]), np.cos(track.beta[1:])], 1)
    assert ((leap * forward).sum(1) / 3.5 >= np.cos(0.155) - 1e-9).all()


def _beta(turns: dict[int, float]) -> np.ndarray:
    """Headings of 20 nodes that turn by the given angles, closed."""
    return np.cumsum([turns.get(i, 0.0) for i in range(20)])


def test_a_run_of_hard_turns_raises_kerbs_back_to_its_start():
    # Five turns of 0.1 > 0.062 at nodes 5-9: runs of four end at 8 and 9, and reach
    # back to 5 and 6. The closing turn of -0.5 is alone.
    border = kerbs(_beta(dict.fromkeys(range(5, 10), 0.1)))
    assert np.flatnonzero(border).tolist() == [5, 6, 7, 8, 9]


@pytest.mark.parametrize(
    "turns",
    [
        {5: 0.1, 6: 0.1, 7: 0.1, 8: -0.1},  # not to one side
        dict.fromkeys(range(5, 12), 0.06),  # not hard: 0.06 < 0.2 * 0.31
        {5: 0.1, 6: 0.1, 7: 0.1},  # three are not four
    ],
)
def test_gentle_short_and_winding_bends_have_no_kerb(turns):
    assert not kerbs(_beta(turns)).any()


def test_a_kerb_across_the_start_line_spreads_twice():
    # The run 18, 19, 0, 1 flags 1, which spreads to 0, 19, 18. Gymnasium's loop reaches
    # 18 and 19 later, as flagged, and spreads them again: back to 15.
    border = kerbs(_beta({18: 0.1, 19: 0.1, 0: 0.1, 1: 0.1, 10: -0.4}))
    assert np.flatnonzero(border).tolist() == [0, 1, 15, 16, 17, 18, 19]


@pytest.mark.original
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_tracks_are_bit_identical_to_gymnasiums(monkeypatch):
    pytest.importorskip("Box2D", reason="needs the extra `original`")
    from gymnasium.envs.box2d.car_racing import CarRacing

    attempts = []
    walk = track_module._walk
    monkeypatch.setattr(
        track_module, "_walk", lambda points: attempts.append(0) or walk(points)
    )
    original = CarRacing()
    original._render = lambda mode: None
    seeds = [*range(1000, 1010), *range(4000, 4012), *range(2000, 2004)]
    for seed in seeds:
        original.reset(seed=seed)
        track = make_track(seed)
        expected = np.array(original.track)
        ours = np.stack([track.alpha, track.beta, track.x, track.y], 1)
        np.testing.assert_array_equal(ours, expected)
        np.testing.assert_array_equal(track.border, _drawn_kerbs(original))
    assert len(attempts) > len(seeds)  # some of them needed a second attempt


def _drawn_kerbs(original) -> np.ndarray:
    """Kerb flags from the drawing list: after its tile, coloured by a tuple."""
    flags: list[bool] = []
    for _, color in original.road_poly:
        if isinstance(color, tuple):
            flags[-1] = True
        else:
            flags.append(False)
    return np.array(flags)
