"""Small real bundles made with this tool; README.md beside this file says how each was made.

Each is one archive, `<name>.tar.gz`, that `hlotrace.load` opens as it is. `make.py` makes them anew.
"""

from __future__ import annotations

from pathlib import Path

from hlotrace.errors import unknown_name

_SUFFIX = ".tar.gz"


def names() -> list[str]:
    """The samples' names, in alphabetical order."""
    return sorted(path.name.removesuffix(_SUFFIX) for path in Path(__file__).parent.glob(f"*{_SUFFIX}"))


def path_of(name: str) -> Path:
    """The archive of the sample called `name`.

    Raises:
        HlotraceError: there is no such sample; the nearest names come first.
    """
    if name not in names():
        raise unknown_name("sample", name, names())
    return Path(__file__).parent / f"{name}{_SUFFIX}"
