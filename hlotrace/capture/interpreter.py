"""The Python that runs the script: whether it starts, and which jax it has. Nothing is imported to find that out."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass

from hlotrace.errors import CaptureError

OLDEST_PYTHON = (3, 11)
_PACKAGES = ("jax", "jaxlib", "libtpu")
_SECONDS_TO_START = 60
_PROBE = f"""
import importlib.metadata, importlib.util, json, platform
found = {{}}
for name in {_PACKAGES!r}:
    if importlib.util.find_spec(name) is not None:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = "of unknown version"
print()
print(json.dumps({{"python": platform.python_version(), "packages": found}}))
"""


@dataclass(frozen=True)
class Interpreter:
    """A Python that starts: `packages` maps jax, jaxlib and libtpu to their versions; absent is not installed."""

    executable: str
    python: str
    packages: dict[str, str]

    def require_jax(self) -> None:
        """Refuse an interpreter that cannot run a JAX script."""
        if "jax" not in self.packages:
            raise CaptureError(
                "jax is not installed there", place=self.executable, remedy=f"Install it: {self._pip('jax')}."
            )

    def require_libtpu(self) -> None:
        """Refuse an interpreter without the TPU compiler."""
        if "libtpu" in self.packages or os.environ.get("TPU_LIBRARY_PATH"):
            return
        if sys.platform != "linux":
            raise CaptureError("the TPU compiler, libtpu, exists for Linux only", place=sys.platform)
        raise CaptureError(
            "libtpu, the TPU compiler, is not installed there",
            place=self.executable,
            remedy=f"Install it: {self._pip('jax[tpu]', self.packages.get('jax'))}.",
        )

    def _pip(self, package: str, version: str | None = None) -> str:
        pinned = f"{package}=={version}" if version and version[0].isdigit() else package
        return f"{self.executable} -m pip install '{pinned}'"


def find_interpreter(python: str | None = None) -> Interpreter:
    """The interpreter `python`, a path or a command; by default the one that runs now.

    Raises:
        CaptureError: there is none, it does not start, or it is too old.
    """
    if python is None:
        executable: str | None = sys.executable
    else:
        executable = shutil.which(os.path.expanduser(python))  # noqa: PTH111, a bare command name is no path
    if not executable:
        raise CaptureError("no such interpreter", place=f"--python {python}", remedy="Give the path of a python.")
    interpreter = _ask(executable)
    if tuple(int(part) for part in interpreter.python.split(".")[:2]) < OLDEST_PYTHON:
        oldest = ".".join(map(str, OLDEST_PYTHON))
        raise CaptureError(f"expected Python {oldest} or newer, found {interpreter.python}", place=executable)
    return interpreter


def _ask(executable: str) -> Interpreter:
    try:
        done = subprocess.run(
            [executable, "-c", _PROBE],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_SECONDS_TO_START,
            check=False,
        )
        answer = json.loads(done.stdout.strip().splitlines()[-1])
        return Interpreter(executable, answer["python"], answer["packages"])
    except subprocess.TimeoutExpired:
        reason = f"it did not answer within {_SECONDS_TO_START} s"
    except OSError as error:
        reason = error.strerror or str(error)
    except (json.JSONDecodeError, IndexError, TypeError, KeyError):
        reason = (done.stderr.strip() or done.stdout.strip() or f"it ended with {done.returncode}").splitlines()[-1]
    raise CaptureError(f"expected a Python interpreter: {reason}", place=executable)
