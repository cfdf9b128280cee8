"""A training state on disk: every leaf as it is, so that it goes on bit for bit."""

import io
import zipfile
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from structjax.errors import StructjaxError
from structjax.files import write_atomic


def save_tree(path: Path, tree: Any) -> None:
    """Writes the leaves of a tree, random keys included, atomically."""
    leaves = [_plain(leaf) for leaf in jax.tree.leaves(tree)]
    buffer = io.BytesIO()
    np.savez(buffer, *leaves)
    write_atomic(path, buffer.getvalue())


def load_tree(path: Path, like: Any) -> Any:
    """The tree of `save_tree`, with the structure of `like`.

    Raises:
      StructjaxError: it cannot be read, or is the state of something else.
    """
    leaves, structure = jax.tree.flatten(like)
    stored = _read(path)
    expected = [_plain(leaf) for leaf in leaves]
    if [_kind(x) for x in stored] != [_kind(x) for x in expected]:
        raise StructjaxError(
            f"checkpoint {path} does not belong to this policy and preset",
            kind="run",
            hint="resume with the options of the run, or start a new one",
        )
    found = [_as(new, old) for new, old in zip(stored, leaves, strict=True)]
    return jax.tree.unflatten(structure, found)


def _read(path: Path) -> list[np.ndarray]:
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as file:
            return [file[f"arr_{i}"] for i in range(len(file.files))]
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise StructjaxError(
            f"cannot read checkpoint {path}: {error}",
            kind="run",
            hint="restore it, or start a new run",
        ) from error


def _kind(leaf: np.ndarray) -> tuple[Any, ...]:
    return leaf.shape, leaf.dtype


def _is_key(leaf: Any) -> bool:
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _plain(leaf: Any) -> np.ndarray:
    return np.asarray(jax.random.key_data(leaf) if _is_key(leaf) else leaf)


def _as(stored: np.ndarray, like: Any) -> jax.Array:
    array = jnp.asarray(stored)
    return jax.random.wrap_key_data(array) if _is_key(like) else array
