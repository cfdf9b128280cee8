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
    directory = Path(__file__).parent.parent / ".git"
    try:
        head = (directory / "HEAD").read_text().strip()
        if not head.startswith("ref: "):
            return head
        ref = head.removeprefix("ref: ")
        if (directory / ref).exists():
            return (directory / ref).read_text().strip()
        packed = (directory / "packed-refs").read_text().splitlines()
        return next((line.split()[0] for line in packed if line.endswith(ref)), None)
    except OSError:
        return None


def device() -> str:
    """The device JAX computes on, e.g. `"cpu (x86_64)"`."""
    import jax

    first = jax.devices()[0]
    kind = platform.machine() if first.platform == "cpu" else first.device_kind
    return f"{first.platform} ({kind})"
