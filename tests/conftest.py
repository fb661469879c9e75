from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import settings

# The first call of a native kernel compiles it, which is no property of the example at hand.
settings.register_profile("hlotrace", deadline=None)
settings.load_profile("hlotrace")

# A shell starts what it puts in the background with interrupts ignored, and children would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def synthetic() -> ModuleType:
    """tests/synthetic.py: builders of small tables by hand."""
    return helper("synthetic")


@pytest.fixture(scope="session")
def xspaces() -> ModuleType:
    """tests/xspaces.py: a writer of traces."""
    return helper("xspaces")


def helper(file: str) -> ModuleType:
    """A file of this folder that several tests use, as a module."""
    name = f"hlotrace_tests_{file}"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, HERE / f"{file}.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules[name]


def run_python(source: str, *arguments: str, **environment: str) -> str:
    """What a Python program prints that runs by itself; its error is ours."""
    done = subprocess.run(
        [sys.executable, "-c", source, *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.fixture(scope="session")
def cpu_compiler() -> Callable[..., str]:
    """Runs a program that compiles for this CPU with jax: (source, *arguments) → what it prints."""
    pytest.importorskip("jax", reason="jax is not installed")
    return lambda source, *arguments: run_python(source, *arguments, JAX_PLATFORMS="cpu")


@pytest.fixture(scope="session")
def tpu_compiler() -> Callable[..., str]:
    """Runs a program that compiles for TPU topologies with libtpu: (source, *arguments) → what it prints."""
    for package in ("jax", "libtpu"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    compile_only = {"JAX_PLATFORMS": "cpu", "TPU_SKIP_MDS_QUERY": "1", "ALLOW_MULTIPLE_LIBTPU_LOAD": "1"}
    return lambda source, *arguments: run_python(source, *arguments, **compile_only)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of other people's files, beside the repository where it is there."""
    folder = HERE.parent.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("../shared/data is not here")
    return folder


CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM_FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)


@pytest.fixture(scope="session")
def browser():
    """One Chromium for all tests that drive one; they are skipped, saying so, where there is none."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    executable = next((path for name in CHROMIUM_NAMES if (path := shutil.which(name))), None)
    if executable is None:
        pytest.skip("there is no Chromium here")
    with sync_api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=executable, args=list(CHROMIUM_FLAGS))
        yield chromium
        chromium.close()
