"""The layout, the packaging and the one-way imports that docs/architecture.md describes."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MAPPED = {"parsers": "hlotrace.parsers", "app": "hlotrace.app", "sample_dumps": "hlotrace.sample_dumps"}

# A place may import from the places named beside it and from its own; `hlotrace` itself is open to all.
MAY_IMPORT: dict[str, set[str]] = {
    "errors": set(),
    "units": set(),
    "native": set(),
    "tables": {"errors", "units"},
    "devices": {"errors", "units"},
    "hlo": {"errors", "units", "native", "tables", "devices"},
    "bundle": {"errors", "units", "tables", "devices"},
    "parsers": {"errors", "units", "native", "tables", "devices", "hlo", "bundle"},
    "capture": {"errors", "units", "devices", "bundle"},
    "sample_dumps": {"errors"},
}
MAY_IMPORT["trace"] = {*MAY_IMPORT["parsers"], "parsers"}
MAY_IMPORT["load"] = MAY_IMPORT["trace"] | {"trace"}
MAY_IMPORT["analyses"] = {*MAY_IMPORT["load"], "load"} - {"parsers", "trace"}
MAY_IMPORT["views"] = MAY_IMPORT["analyses"] | {"analyses"}
MAY_IMPORT["render"] = MAY_IMPORT["views"] | {"views"}
MAY_IMPORT["app"] = MAY_IMPORT["render"] | {"render", "sample_dumps"}
MAY_IMPORT["cli"] = MAY_IMPORT["app"] | {"app", "capture"}
MAY_IMPORT["__main__"] = {"cli"}

HEAVY = {"pandas", "pyarrow", "numpy", "numba", "plotly", "dash", "rich", "typer", "jinja2", "fsspec", "jax"}


def source_files() -> Iterator[tuple[str, Path]]:
    """Every module of the package as (dotted name, path)."""
    for top in ("hlotrace", *MAPPED):
        for path in sorted((ROOT / top).rglob("*.py")):
            relative = path.relative_to(ROOT).with_suffix("")
            parts = [MAPPED.get(relative.parts[0], relative.parts[0]), *relative.parts[1:]]
            yield ".".join(parts).removesuffix(".__init__"), path


def place_of(module: str) -> str:
    """`hlotrace.hlo.shape` gives `hlo`; private modules of the loader belong to it."""
    parts = module.split(".")
    place = parts[1] if len(parts) > 1 else ""
    return "load" if place.startswith("_") and not place.startswith("__") else place


def imports_of(tree: ast.AST) -> Iterator[str]:
    """The dotted names that a module imports, inside functions too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield from (
                [f"hlotrace.{alias.name}" for alias in node.names] if node.module == "hlotrace" else [node.module]
            )


def violations(module: str, source: str) -> list[str]:
    """What `module` imports from places to its right."""
    place = place_of(module)
    if place == "":
        return []
    allowed = {place, "", "__version__", *MAY_IMPORT[place]}
    ours = (name for name in imports_of(ast.parse(source)) if name.split(".")[0] == "hlotrace")
    return [f"{module} imports {name}" for name in ours if place_of(name) not in allowed]


def test_imports_run_one_way() -> None:
    found = [line for module, path in source_files() for line in violations(module, path.read_text())]
    assert not found, "\n".join(found)


def test_the_import_check_can_fail() -> None:
    assert violations("hlotrace.hlo.shape", "from hlotrace.parsers import hlo_text")
    assert violations("hlotrace.views.ops", "def f():\n    import hlotrace.parsers.hlo_text")
    assert not violations("hlotrace.parsers.hlo_text", "from hlotrace.hlo import module")


@pytest.mark.parametrize("place", ["capture", "errors", "units", "devices", "bundle", "tables"])
def test_what_runs_beside_any_pinned_stack_imports_only_the_standard_library_at_import(place: str) -> None:
    names = [module for module, _ in source_files() if place_of(module) == place and not module.endswith("._child")]
    code = f"import sys\nfor name in {names!r}:\n    __import__(name)\nprint(*sorted(set(sys.modules) & {HEAVY!r}))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == []


def heavy_after(statement: str) -> list[str]:
    code = f"import sys\n{statement}\nprint(*sorted(set(sys.modules) & {HEAVY!r}))"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()


def test_importing_hlotrace_loads_nothing_heavy() -> None:
    assert heavy_after("import hlotrace") == []


def test_the_heaviness_check_can_fail() -> None:
    assert heavy_after("import pandas") != []


def test_the_package_list_equals_the_tree() -> None:
    listed = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"])
    inits = {module for module, path in source_files() if path.name == "__init__.py"}
    assert listed == inits


def test_every_file_stands_in_a_package() -> None:
    homeless = [path for _, path in source_files() if not (path.parent / "__init__.py").exists()]
    assert not homeless
