"""The track cache: fast when sound, rebuilt when not, never needed."""

import numpy as np
import pytest

from structjax.compilation import cache_directory
from structjax.errors import StructjaxError
from structjax.tasks.car_racing import bank
from structjax.tasks.car_racing.bank import track_bank
from structjax.tasks.car_racing.tables import track_arrays
from structjax.tasks.car_racing.track import make_track

SEEDS = (1000, 1001)


@pytest.fixture
def built(monkeypatch):
    """Seeds generated since the test began."""
    seeds = []
    monkeypatch.setattr(
        bank, "make_track", lambda seed: seeds.append(seed) or make_track(seed)
    )
    return seeds


@pytest.fixture
def cached(tmp_path):
    """The cache file of SEEDS."""
    track_bank(SEEDS, tmp_path)
    (path,) = tmp_path.iterdir()
    return path


def _same(first, second) -> None:
    for name, a, b in zip(first._fields, first, second, strict=True):
        np.testing.assert_array_equal(a, b, err_msg=name)


def _expected():
    tracks = [track_arrays(make_track(seed)) for seed in SEEDS]
    return type(tracks[0])(*(np.stack(field) for field in zip(*tracks, strict=True)))


def test_the_bank_stacks_the_tracks_of_its_seeds(tmp_path):
    stacked = track_bank(SEEDS, tmp_path)
    assert stacked.n.tolist() == [293, 312]
    _same(stacked, _expected())


def test_a_sound_file_saves_the_generation(cached, built):
    _same(track_bank(SEEDS, cached.parent), _expected())
    assert built == []


def _truncate(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _empty(path):
    path.write_bytes(b"")


def _flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(bytes(content))


def _foreign(path):
    path.write_text("not an archive")


def _rewrite(path, **changes):
    with np.load(path) as file:
        content = {name: file[name] for name in file.files}
    np.savez(path, **(content | changes))


def _altered(path):  # a valid archive whose arrays are not those that were written
    with np.load(path) as file:
        x = file["x"]
    x[0, 0] += 1
    _rewrite(path, x=x)


def _other_version(path):
    with np.load(path) as file:
        header = str(file["header"])
    _rewrite(path, header=np.array(header.replace('"format": 1', '"format": 0')))


def _other_generator(path):
    with np.load(path) as file:
        header = str(file["header"])
    _rewrite(path, header=np.array(header.replace('"generator": "', '"generator": "0')))


def _other_seeds(path):
    track_bank((1002, 1003), path.parent)
    (other,) = set(path.parent.iterdir()) - {path}
    other.replace(path)


def _pickled(path):
    _rewrite(path, x=np.array([{"an": "object"}], object))


FAULTS = [
    _truncate,
    _empty,
    _flip,
    _foreign,
    _altered,
    _other_version,
    _other_generator,
    _other_seeds,
    _pickled,
]


@pytest.mark.parametrize("damage", FAULTS)
def test_a_damaged_or_foreign_file_is_rebuilt(cached, built, damage):
    damage(cached)
    built.clear()
    _same(track_bank(SEEDS, cached.parent), _expected())
    assert built == list(SEEDS)
    built.clear()
    track_bank(SEEDS, cached.parent)  # and the file is sound again
    assert built == []


def test_an_unusable_cache_directory_only_costs_time(tmp_path):
    (tmp_path / "file").write_text("")
    _same(track_bank(SEEDS, tmp_path / "file" / "cache"), _expected())


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_an_interrupted_write_leaves_no_file(tmp_path, monkeypatch, error):
    def savez(file, **content):
        file.write(b"half")
        raise error

    monkeypatch.setattr(bank.np, "savez", savez)
    if error is OSError:
        _same(track_bank(SEEDS, tmp_path), _expected())
    else:
        with pytest.raises(KeyboardInterrupt):
            track_bank(SEEDS, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_the_cache_directory_follows_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.delenv("STRUCTJAX_CACHE", raising=False)
    assert cache_directory() == tmp_path / "xdg" / "structjax"
    monkeypatch.setenv("STRUCTJAX_CACHE", str(tmp_path / "own"))
    assert cache_directory() == tmp_path / "own"


@pytest.mark.parametrize("seeds", [(), (3, -1)])
def test_impossible_seeds_are_refused(seeds, tmp_path):
    with pytest.raises(StructjaxError, match=r"accepted: .*whole numbers"):
        track_bank(seeds, tmp_path)
