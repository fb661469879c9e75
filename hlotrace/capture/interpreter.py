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
            raise CaptureError("jax is not installed there", place=self.executable, remedy=self._install("jax"))

    def require_libtpu(self) -> None:
        """Refuse an interpreter without jax or the TPU compiler."""
        if "jax" in self.packages and ("libtpu" in self.packages or os.environ.get("TPU_LIBRARY_PATH")):
            return
        if sys.platform != "linux":
            raise CaptureError("the TPU compiler, libtpu, exists for Linux only", place=sys.platform)
        what = "libtpu, the TPU compiler," if "jax" in self.packages else "jax with libtpu, the TPU compiler,"
        raise CaptureError(f"{what} is not installed there", place=self.executable, remedy=self._install("tpu"))

    def _install(self, extra: str) -> str:
        """The command: for our own environment as the documentation has it, for another with the jax that it has."""
        package = f"hlotrace[{extra}]"
        if self.executable != sys.executable:
            version = self.packages.get("jax", "")
            package = ("jax[tpu]" if extra == "tpu" else "jax") + (f"=={version}" if version[:1].isdigit() else "")
        return f"Install it: {self.executable} -m pip install '{package}'."


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
        reason = f"it ended with {done.returncode}"
    raise CaptureError(f"this is not a Python with jax: {reason}", place=executable, remedy="Give another --python.")
