"""Started by its path, `PYTHON _child.py SPEC.json`, with any environment's Python: see `hlotrace.capture.spec`."""

import importlib.util
import os
import sys


def _load_hlotrace() -> None:
    """Make `hlotrace` importable from where this file is, with nothing left on `sys.path`."""
    here = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 (before anything else is imported)
    if not sys.flags.safe_path:
        del sys.path[0]
    root = os.path.dirname(here)  # noqa: PTH120
    place = os.path.join(root, "__init__.py")  # noqa: PTH118
    spec = importlib.util.spec_from_file_location("hlotrace", place, submodule_search_locations=[root])
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["hlotrace"] = module
    spec.loader.exec_module(module)


if __name__ == "__main__":
    _load_hlotrace()

    from hlotrace.capture import launch
    from hlotrace.capture.spec import CaptureSpec

    with open(sys.argv[1], encoding="utf-8") as file:  # noqa: PTH123
        _spec = CaptureSpec.from_json(file.read())
    sys.exit(launch.main(_spec))
