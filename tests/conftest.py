from __future__ import annotations

import importlib.util
import shutil
import sys
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import settings

# The first call of a native kernel compiles it, which is no property of the example at hand.
settings.register_profile("hlotrace", deadline=None)
settings.load_profile("hlotrace")

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def synthetic() -> ModuleType:
    """tests/synthetic.py: builders of small tables by hand."""
    name = "hlotrace_tests_synthetic"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, HERE / "synthetic.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules[name]


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
