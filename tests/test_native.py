"""Native kernels: the same answers as plain Python, compiled once, never run when damaged."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import textwrap
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from hlotrace import native

SOURCE = textwrap.dedent(
    """
    from __future__ import annotations
    from hlotrace.native import inner, kernel

    @inner
    def _plus(value: int, more: int) -> int:
        return value + more

    @kernel
    def sums(data: Bytes, start: int, scale: float, out: Ints, rows: Rows) -> int:
        total = 0
        for i in range(start, len(data)):
            total = _plus(total, data[i])
            out[i] = total
        rows[1, 0] = int(total * scale)
        return total
    """
)

ALLOCATES = """
import numpy as np
from hlotrace.native import kernel

@kernel
def bad(n: "int") -> "int":
    return np.zeros(n, np.int64).sum()
"""


def module_from(path: Path, source: str) -> ModuleType:
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def called(kernel: object) -> tuple[int, list[int], list[list[int]]]:
    out, rows = np.zeros(4, np.int64), np.zeros((2, 2), np.int64)
    total = kernel(np.array([1, 2, 3, 250], np.uint8), 1, 0.5, out, rows)  # type: ignore[operator]
    return total, out.tolist(), rows.tolist()


def test_a_kernel_gives_what_its_python_gives(tmp_path: Path) -> None:
    module = module_from(tmp_path / "kernels_one.py", SOURCE)
    assert called(module.sums) == called(module.sums.python) == (255, [0, 2, 5, 255], [[0, 0], [127, 0]])


def test_a_second_process_loads_the_kept_code_without_numba(tmp_path: Path) -> None:
    module = module_from(tmp_path / "kernels_two.py", SOURCE)
    called(module.sums)
    code = f"""
import sys; sys.path.insert(0, {str(tmp_path)!r})
import numpy as np, kernels_two
out, rows = np.zeros(4, np.int64), np.zeros((2, 2), np.int64)
print(kernels_two.sums(np.array([1, 2, 3, 250], np.uint8), 1, 0.5, out, rows), 'numba' in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.split() == [
        "255",
        "False",
    ]


def test_whoever_waits_is_told_before_a_compilation_and_only_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[int] = []
    monkeypatch.setattr(native, "before_compiling", [lambda: told.append(1)])
    for _ in range(2):
        monkeypatch.setattr(native, "_loaded", {})
        called(module_from(tmp_path / "kernels_told.py", SOURCE).sums)
    assert told == [1]


def test_damaged_code_is_compiled_again_not_run(tmp_path: Path) -> None:
    module = module_from(tmp_path / "kernels_three.py", SOURCE)
    called(module.sums)
    (kept,) = (tmp_path / "__pycache__").glob("kernels_three.*.native")
    content = bytearray(kept.read_bytes())
    content[len(content) // 2] ^= 0xFF
    kept.write_bytes(content)
    assert native._kept_code(module) is None


@pytest.mark.parametrize(
    ("position", "wrong"),
    [(0, np.zeros(4, np.int8)), (3, np.zeros(8, np.int64)[::2]), (4, np.zeros(4, np.int64))],
)
def test_an_array_of_another_kind_is_refused(tmp_path: Path, position: int, wrong: object) -> None:
    module = module_from(tmp_path / f"kernels_four{position}.py", SOURCE)
    arguments: list[object] = [np.zeros(4, np.uint8), 0, 1.0, np.zeros(4, np.int64), np.zeros((2, 2), np.int64)]
    arguments[position] = wrong
    with pytest.raises(TypeError, match="contiguous"):
        module.sums(*arguments)


def test_a_kernel_that_allocates_is_refused(tmp_path: Path) -> None:
    module = module_from(tmp_path / "kernels_five.py", ALLOCATES)
    with pytest.raises(TypeError, match="allocates"):
        module.bad(3)


def test_a_kernel_calls_functions_of_other_modules_and_takes_pointers(tmp_path: Path) -> None:
    parts = """
from hlotrace.native import inner

SIZE = 3

@inner
def twice(data: "BytesAt", at: int) -> int:
    return 2 * data[at]
"""
    user = """
from hlotrace.native import kernel
from kernels_parts import SIZE, twice

@kernel
def doubles(data: "BytesAt", out: "IntsAt") -> "int":
    for at in range(SIZE):
        out[at] = twice(data, at)
    return SIZE
"""
    module_from(tmp_path / "kernels_parts.py", parts)
    module = module_from(tmp_path / "kernels_user.py", user)
    out = np.zeros(3, np.int64)
    assert module.doubles(np.array([1, 2, 200], np.uint8), out) == 3
    assert out.tolist() == [2, 4, 400]
    before = native._code_name(module)
    (tmp_path / "kernels_parts.py").write_text(parts.replace("2 *", "3 *"))
    assert native._code_name(module) != before, "code that is made from other sources must be compiled again"
