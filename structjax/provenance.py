"""Where a number comes from: versions, commit, device."""

import contextlib
import platform
from importlib import metadata
from pathlib import Path

PACKAGES = ("structjax", "jax", "flax", "optax", "gymnax", "numpy", "pandas", "scipy")


def versions() -> dict[str, str]:
    """Versions of Python and of every package a number can depend on."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


def git_commit() -> str | None:
    """The commit checked out in the source tree structjax runs from, if it is one.

    Read from the files of `.git`: this process starts no other.
    """
    return commit_of(Path(__file__).parent.parent)


def commit_of(checkout: Path) -> str | None:
    """The commit of a checkout or a linked worktree; None for another directory."""
    try:
        own = _own(checkout / ".git")
        head = (own / "HEAD").read_text().strip()
        if not head.startswith("ref: "):
            return head
        ref = head.removeprefix("ref: ")
        shared = _shared(own)
        if (shared / ref).exists():
            return (shared / ref).read_text().strip()
        packed = (shared / "packed-refs").read_text().splitlines()
        return next((line.split()[0] for line in packed if line.endswith(ref)), None)
    except OSError:
        return None


def _own(git: Path) -> Path:
    """The directory of a checkout's HEAD: a linked worktree's `.git` only names it."""
    if git.is_file():
        return git.parent / git.read_text().strip().removeprefix("gitdir: ")
    return git


def _shared(own: Path) -> Path:
    """The directory of the branches: a linked worktree shares its repository's."""
    common = own / "commondir"
    return own / common.read_text().strip() if common.exists() else own


def device() -> str:
    """The device JAX computes on, e.g. `"cpu (x86_64)"`."""
    import jax

    first = jax.devices()[0]
    kind = platform.machine() if first.platform == "cpu" else first.device_kind
    return f"{first.platform} ({kind})"
