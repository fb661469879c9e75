"""Traces against XProf: counts and total durations by event name, self times by category on a real TPU's trace.

XProf leaves its caches beside what it reads and in the home directory, so it gets copies and a home of its own.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hlotrace.load import load
from hlotrace.parsers.xplane import read_space

FILES = ["xprof/tpu_inference_2.xplane.pb", "reactant/*.xplane.pb", "tracelens/*.xplane.pb"]
STATS = """
import sys
from xprof.convert import raw_to_tool_data
data, _ = raw_to_tool_data.xspace_to_tool_data([sys.argv[1]], "hlo_stats", {})
print("ANSWER" + (data if isinstance(data, str) else data.decode()))
"""
AGGREGATE = """
import sys
from xprof.cli.internal.oss import xplane_tools
print("ANSWER" + xplane_tools.aggregate_xplane_events(sys.argv[1]))
"""


@pytest.fixture(scope="module", autouse=True)
def _needs_xprof() -> None:
    pytest.importorskip("xprof", reason="xprof is not installed: pip install 'hlotrace[xprof]'")


def answer(code: str, trace: Path, tmp_path: Path, *, directory: bool = False) -> Any:
    """What XProf says of a copy of the trace."""
    run = tmp_path / "logs" / "plugins" / "profile" / "run"
    run.mkdir(parents=True)
    copy = Path(shutil.copy(trace, run / "host.xplane.pb"))
    environment = {**os.environ, "HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    command = [sys.executable, "-c", code, str(run if directory else copy)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=environment)
    found = re.search(r"ANSWER(.*)", done.stdout, re.DOTALL)
    assert found, done.stderr[-2000:]
    return json.loads(found[1])


@pytest.mark.parametrize("pattern", FILES)
def test_counts_and_durations_by_event_name_are_xprofs(shared_data: Path, tmp_path: Path, pattern: str) -> None:
    for number, path in enumerate(sorted(shared_data.glob(pattern))):
        theirs = answer(AGGREGATE, path, tmp_path / str(number), directory=True)["aggregates"]
        counts: Counter[str] = Counter()
        durations: Counter[str] = Counter()
        for plane in read_space(path.read_bytes(), place=path.name).planes:
            names = plane.event_metadata.names
            for line in plane.lines:
                events = plane.read(line)
                # XProf has durations as nanoseconds in floats, and cuts them to whole picoseconds again.
                whole = np.trunc(events.duration_ps / 1000 * 1000).astype(np.int64)
                for row, duration in zip(plane.event_metadata.rows(events.metadata_ids), whole.tolist(), strict=True):
                    counts[names[row]] += 1
                    durations[names[row]] += duration
        assert {row["event"]: row["count"] for row in theirs} == counts
        assert {row["event"]: row["total_duration_ps"] for row in theirs} == durations


def test_self_times_by_category_are_xprofs(shared_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HLOTRACE_CACHE_DIR", str(tmp_path / "ours"))
    path = shared_data / "xprof" / "tpu_inference_2.xplane.pb"
    table = answer(STATS, path, tmp_path)
    names = [column["id"] for column in table["cols"]]
    theirs: Counter[str] = Counter()
    occurrences: Counter[str] = Counter()
    for row in table["rows"]:
        values = dict(zip(names, (cell.get("v") for cell in row["c"]), strict=True))
        theirs[values["category"]] += values["total_self_time"] * 1e6
        occurrences[values["category"]] += int(values["occurrences"])
    ours = load(path)["op_times"].groupby("hlo_category")[["self_ps", "occurrences"]].sum()
    assert ours["occurrences"].to_dict() == occurrences
    assert ours["self_ps"].astype(float).to_dict() == pytest.approx(theirs, rel=1e-6)
