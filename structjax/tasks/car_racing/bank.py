"""Track banks: the arrays of many tracks, generated once and cached on disk.

A cache file is only ever a saving of time: it is used when its header (format, seeds,
generator) and its checksum agree, and rebuilt in every other case.
"""

import hashlib
import json
import logging
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from structjax.compilation import cache_directory
from structjax.ranges import episode_seeds
from structjax.tasks.car_racing import constants, tables, track
from structjax.tasks.car_racing.tables import TrackArrays, track_arrays
from structjax.tasks.car_racing.track import make_track

FORMAT = 1

TrackBank = TrackArrays
"""The arrays of K tracks: every field of `TrackArrays` with a leading axis `[K]`."""

_log = logging.getLogger(__name__)


def track_bank(
    seeds: Sequence[int], cache_dir: str | os.PathLike[str] | None = None
) -> TrackBank:
    """The tracks of the given seeds, in their order, from the cache or generated.

    Args:
      seeds: K Gymnasium seeds.
      cache_dir: where the cache lies; None for `cache_directory()`. A directory that
        cannot be written costs time, nothing else.

    Raises:
      StructjaxError: no seeds, or no such seed.
    """
    seeds = list(episode_seeds(seeds))
    folder = cache_directory() if cache_dir is None else Path(cache_dir)
    header = _header(seeds)
    name = hashlib.sha256(json.dumps(seeds).encode()).hexdigest()[:16]
    path = folder / f"car_tracks_{name}.npz"
    bank = _load(path, header)
    if bank is None:
        bank = _stack([track_arrays(make_track(seed)) for seed in seeds])
        _save(path, header, bank)
    return bank


def _stack(tracks: Sequence[TrackArrays]) -> TrackBank:
    """Stacks K tracks along a new leading axis."""
    return TrackArrays(*(np.stack(field) for field in zip(*tracks, strict=True)))


def _header(seeds: Sequence[int]) -> str:
    """What must agree for a file to be used: format, seeds, fields, generator."""
    return json.dumps(
        {
            "format": FORMAT,
            "task": "car_racing",
            "seeds": list(seeds),
            "fields": TrackArrays._fields,
            "generator": _generator(),
        }
    )


def _generator() -> str:
    """Digest of the generating source: a changed generator makes old files stale."""
    digest = hashlib.sha256()
    for module in (constants, tables, track):
        digest.update(Path(str(module.__file__)).read_bytes())
    return digest.hexdigest()


def _checksum(bank: TrackBank) -> str:
    """Digest of all arrays with their shapes and types."""
    digest = hashlib.sha256()
    for name, array in zip(bank._fields, bank, strict=True):
        digest.update(f"{name} {array.dtype.str} {array.shape};".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def _load(path: Path, header: str) -> TrackBank | None:
    """The cached bank, or None when it is absent or not exactly what was asked for."""
    if not path.is_file():
        return None
    try:
        # Opened here: np.load leaves a damaged archive open.
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            bank = TrackArrays(*(file[name] for name in TrackArrays._fields))
            sound = str(file["header"]) == header
            sound = sound and str(file["checksum"]) == _checksum(bank)
    except Exception as error:  # whatever is wrong with a cache file, it is rebuilt
        _log.info("track cache %s cannot be read (%s); rebuilding", path, error)
        return None
    return bank if sound else None


def _save(path: Path, header: str, bank: TrackBank) -> None:
    """Writes the cache file whole or not at all."""
    content: dict[str, Any] = bank._asdict()
    content |= {"header": np.array(header), "checksum": np.array(_checksum(bank))}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
        try:
            with os.fdopen(descriptor, "wb") as file:
                np.savez(file, **content)
            os.replace(temporary, path)
        except BaseException:  # an interrupt must not leave the temporary file either
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as error:
        _log.info("track cache %s cannot be written (%s)", path, error)
