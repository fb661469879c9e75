from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

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
