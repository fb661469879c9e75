"""Memory figures against the compiler's own, on programs compiled here and now."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hlotrace import load

pytest.importorskip("jax", reason="jax is not installed")

HERE = Path(__file__).parent
Compile = Callable[[str, str], tuple[dict[str, Any], Path]]
TPU = pytest.mark.tpu_compiler
CASES = [
    pytest.param(program, target, marks=() if target == "cpu" else TPU)
    for target in ("cpu", "v5e:2x2", "tpu7x:2x2x1")
    for program in ("scan_gradient", "donated_step")
]


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Compile:
    """What the compiler says of a program's memory, and its dump; each is compiled once."""
    made: dict[tuple[str, str], tuple[dict[str, Any], Path]] = {}

    def compile_once(program: str, target: str) -> tuple[dict[str, Any], Path]:
        if target != "cpu":
            pytest.importorskip("libtpu", reason="libtpu is not installed")
        if (program, target) not in made:
            out = tmp_path_factory.mktemp(program)
            command = [sys.executable, HERE / "scripts" / "compile_for_memory.py", program, target, out]
            done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=600)
            made[program, target] = json.loads(done.stdout.splitlines()[-1]), out
        return made[program, target]

    return compile_once


def assert_timeline_holds(tables: Any) -> None:
    """The peak of each memory space is no more than its allocations, and what is alive adds up to it."""
    buffers, timeline = tables["buffers"], tables["memory_timeline"]
    allocations = buffers.drop_duplicates("allocation").groupby("memory_space")["allocation_bytes"].sum()
    parts = [name for name in timeline.columns if name.endswith("_bytes") and name != "live_bytes"]
    assert (timeline[parts].sum(axis=1) == timeline["live_bytes"]).all()
    for space, rows in timeline.groupby("memory_space"):
        assert 0 <= rows["live_bytes"].max() <= allocations[space]


@pytest.mark.parametrize(("program", "target"), CASES)
def test_figures_are_the_compilers(compiled: Compile, program: str, target: str) -> None:
    said, dump = compiled(program, target)
    tables = load(dump)
    row = tables["modules"].iloc[0]
    for name in ("argument", "output", "alias"):
        assert row[f"{name}_bytes"] == said[name], name
    assert row["alias_bytes"] > 0 or program != "donated_step"
    if target == "cpu":
        assert row["temp_bytes"] == said["temp"]
    assert row["hbm_peak_bytes"] <= row["hbm_total_bytes"]
    assert_timeline_holds(tables)
    # A total that is not the one of the compiler's memory usage report would be among the problems.
    assert list(dump.glob("*memory-usage-report.txt"))
    assert tables["problems"].empty


@pytest.mark.parametrize(("program", "target"), CASES)
def test_without_side_files_live_ranges_and_peak_are_the_same(
    compiled: Compile, program: str, target: str, tmp_path: Path
) -> None:
    _, dump = compiled(program, target)
    whole = load(dump)
    (proto_path,) = dump.glob("*after_optimizations.hlo.pb")
    alone = Path(shutil.copy(proto_path, tmp_path))
    proto = load(alone)
    assert proto["modules"].iloc[0]["hbm_peak_bytes"] == whole["modules"].iloc[0]["hbm_peak_bytes"]
    columns = ["memory_space", "allocation", "category", "value", "offset_bytes", "bytes"]
    assert proto["buffers"][columns].equals(whole["buffers"][columns])
    live = [tables["buffers"]["live_to"] - tables["buffers"]["live_from"] for tables in (proto, whole)]
    assert np.array_equal(live[0].isna(), live[1].isna())
    assert "our own model" in proto["problems"].iloc[0]["consequence"]


@pytest.mark.tpu_compiler
def test_a_program_that_does_not_fit_has_buffers_that_say_why(compiled: Compile) -> None:
    said, dump = compiled("too_big", "v5e:2x2")
    assert "RESOURCE_EXHAUSTED" in said["error"]
    tables = load(dump)
    row = tables["modules"].iloc[0]
    assert list(row["stages"]) == ["before_optimizations", "after_optimizations"]
    assert row["hbm_total_bytes"] > row["hbm_capacity_bytes"]
    largest = tables["buffers"].sort_values("bytes", ascending=False).iloc[0]
    assert largest["bytes"] == 32768 * 131072 * 2
    assert_timeline_holds(tables)
