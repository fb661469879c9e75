"""Tables of traces made by hand: self times, steps, collectives and joins whose figures can be added up on paper."""

from __future__ import annotations

import gzip
import io
import json
import random
from pathlib import Path
from types import ModuleType
from typing import Any

import pandas as pd
import pytest

from hlotrace.errors import ParseError
from hlotrace.load import load
from hlotrace.parsers.chrome_trace import ChromeEvents
from hlotrace.parsers.xplane import read_space
from hlotrace.tables import ALL_TABLES
from hlotrace.trace import from_chrome, from_xplane
from hlotrace.trace.build import Traced
from hlotrace.trace.programs import INSTRUCTION_COLUMNS

NS = 1000
PROGRAM = (1 << 63) + 5
SIGNED = PROGRAM - (1 << 64)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HLOTRACE_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))


def written(path: Path, data: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def by_instruction(op_times: pd.DataFrame) -> dict[str, Any]:
    assert op_times["instruction"].is_unique
    return {row.instruction: row for row in op_times.itertuples()}


def tpu_plane(x: ModuleType, name: str = "/device:TPU:0") -> Any:
    """A program that runs twice: a loop of 60 with two products of 20 in it, then an asynchronous all-reduce."""
    texts = {
        "while.1": ("%while.1 = (f32[8]) while(%t), body=%b", {"hlo_category": "while"}),
        "dot.2": ("%dot.2 = f32[8,8] dot(%a, %b)", {"hlo_category": "convolution fusion", "flops": x.Unsigned(1024)}),
        "all-reduce-start.3": ("%all-reduce-start.3 = f32[8] all-reduce-start(%a)", {"hlo_category": "all-reduce"}),
        "add.4": ("%add.4 = f32[8] add(%a, %b)", {"source": "model.py:7", "tf_op": "jit(f)/block/add:"}),
        "all-reduce-done.3": ("%all-reduce-done.3 = f32[8] all-reduce-done(%s)", {"hlo_category": "all-reduce"}),
    }
    spans = [
        *(("while.1", 0, 60), ("dot.2", 5, 20), ("dot.2", 30, 20)),
        *(("all-reduce-start.3", 60, 5), ("add.4", 65, 20), ("all-reduce-done.3", 90, 10)),
    ]
    ops = [
        x.Event(texts[op][0], (200 * run + start) * NS, length * NS) for run in range(2) for op, start, length in spans
    ]
    runs = [x.Event(f"jit_f({PROGRAM})", 200 * run * NS, 100 * NS, {"run_id": run + 7}) for run in range(2)]
    metadata = {
        text: x.Metadata(op, {"program_id": x.Unsigned(PROGRAM), **stats}) for op, (text, stats) in texts.items()
    }
    return x.Plane(name, [x.Line("XLA Modules", runs), x.Line("XLA Ops", ops)], metadata=metadata)


def test_a_tpu_gives_self_times_runs_and_what_the_trace_says_of_ops(tmp_path: Path, xspaces: ModuleType) -> None:
    tables = load(written(tmp_path / "h.xplane.pb", xspaces.space([tpu_plane(xspaces)], "host-a")))
    rows = by_instruction(tables["op_times"])
    assert {name: (row.occurrences, row.total_ps, row.self_ps, row.median_ps) for name, row in rows.items()} == {
        "while.1": (2, 120 * NS, 40 * NS, 60 * NS),
        "dot.2": (4, 80 * NS, 80 * NS, 20 * NS),
        "all-reduce-start.3": (2, 10 * NS, 10 * NS, 5 * NS),
        "add.4": (2, 40 * NS, 40 * NS, 20 * NS),
        "all-reduce-done.3": (2, 20 * NS, 20 * NS, 10 * NS),
    }
    assert set(tables["op_times"]["host"]) == {"host-a"}
    assert set(tables["op_times"]["device"]) == {"TPU:0"}
    assert set(tables["op_times"]["module"]) == {"jit_f"}
    assert set(tables["op_times"]["program_id"]) == {SIGNED}
    assert (rows["add.4"].source_file, rows["add.4"].source_line, rows["add.4"].op_name) == (
        "model.py",
        7,
        "jit(f)/block/add",
    )
    assert rows["dot.2"].flops == 1024
    assert [rows[name].category for name in ("while.1", "add.4", "all-reduce-start.3")] == [
        "control",
        "elementwise",
        "collective",
    ]


def test_runs_of_the_main_program_stand_for_steps_and_say_so(tmp_path: Path, xspaces: ModuleType) -> None:
    tables = load(written(tmp_path / "h.xplane.pb", xspaces.space([tpu_plane(xspaces)])))
    steps = tables["steps"]
    assert steps["inferred"].all()
    assert list(steps["basis"]) == ["runs of jit_f"] * 2
    assert list(steps["duration_ps"]) == [200 * NS, 100 * NS]
    assert list(steps["busy_ps"]) == [95 * NS, 95 * NS]
    events = tables["events"]
    ops = events[events["line"] == "XLA Ops"]
    assert list(ops["step"]) == [0] * 6 + [1] * 6
    assert list(ops["run_id"]) == [7] * 6 + [8] * 6
    assert set(ops["program_id"]) == {SIGNED}
    assert ops["event"].iloc[0] == "while.1"


def test_an_asynchronous_collective_is_hidden_where_other_ops_run(tmp_path: Path, xspaces: ModuleType) -> None:
    planes = [tpu_plane(xspaces), tpu_plane(xspaces, "/device:TPU:1")]
    row = load(written(tmp_path / "h.xplane.pb", xspaces.space(planes)))["collectives"].iloc[0]
    assert (row["instruction"], row["kind"], row["form"]) == ("all-reduce-start.3", "all-reduce", "start/done")
    assert row["execution_count"] == 4
    assert (row["duration_ps"], row["median_ps"]) == (4 * 40 * NS, 40 * NS)
    assert (row["hidden_ps"], row["exposed_ps"]) == (4 * 20 * NS, 4 * 20 * NS)
    assert list(row["overlapped_with"]) == ["add.4"]


def test_a_steps_line_gives_the_steps(tmp_path: Path, xspaces: ModuleType) -> None:
    plane = tpu_plane(xspaces)
    plane.lines = [
        *plane.lines,
        xspaces.Line("Steps", [xspaces.Event("41", 0, 150 * NS), xspaces.Event("42", 150 * NS, 200 * NS)]),
    ]
    steps = load(written(tmp_path / "h.xplane.pb", xspaces.space([plane])))["steps"]
    assert list(steps["step"]) == [41, 42]
    assert list(steps["busy_ps"]) == [95 * NS, 95 * NS]
    assert not steps["inferred"].any()
    assert set(steps["basis"]) == {"Steps line"}


def test_gpu_streams_run_beside_each_other(tmp_path: Path, xspaces: ModuleType) -> None:
    x = xspaces
    said = {"hlo_module": x.Ref("jit_f"), "program_id": 3}
    compute = [
        x.Event("gemm_kernel", 10 * NS, 50 * NS, {"hlo_op": x.Ref("dot.1"), **said}),
        x.Event("small_kernel", 60 * NS, 10 * NS, {"hlo_op": x.Ref("dot.1"), **said}),
        x.Event("MemcpyD2H", 80 * NS, 5 * NS),
    ]
    communication = [
        x.Event("ncclDevKernel_AllReduce_Sum_f32", 40 * NS, 40 * NS, {"hlo_op": x.Ref("all-reduce.2"), **said})
    ]
    launches = [x.Event("cuLaunchKernel", 0, 3 * NS, {"hlo_op": x.Ref("dot.1"), **said})]
    planes = [
        x.Plane("/device:GPU:0", [x.Line("Stream #13(Compute)", compute), x.Line("Stream #14", communication)]),
        x.Plane("/host:CPU", [x.Line("python", launches)]),
    ]
    tables = load(written(tmp_path / "h.xplane.pb", x.space(planes)))
    rows = {
        row.instruction if isinstance(row.instruction, str) else row.name: row
        for row in tables["op_times"].itertuples()
    }
    assert rows["dot.1"].occurrences == 2
    assert rows["dot.1"].name == "gemm_kernel"
    assert rows["MemcpyD2H"].category == "data movement"
    assert rows["all-reduce.2"].category == "collective"
    assert set(tables["op_times"]["device"]) == {"GPU:0"}
    row = tables["collectives"].iloc[0]
    assert (row["kind"], row["form"]) == ("all-reduce", "kernel")
    assert (row["hidden_ps"], row["exposed_ps"]) == (30 * NS, 10 * NS)


def cpu_planes(x: ModuleType, stamp_ns: int = 0) -> list[Any]:
    def thunk(name: str, start: int, length: int, ordinal: int = 0) -> Any:
        said = {
            "hlo_op": x.Ref(name),
            "hlo_module": x.Ref("jit_f"),
            "program_id": 1,
            "run_id": start,
            "device_ordinal": ordinal,
        }
        return x.Event(name, start * NS, length * NS, said)

    main = [x.Event("step", 0, 100 * NS, {"step_num": 5}), x.Event("step", 100 * NS, 80 * NS, {"step_num": 6})]
    work = [thunk("fusion", 10, 30), thunk("dot", 20, 5), thunk("fusion", 110, 30), x.Event("wait", 150 * NS, 9 * NS)]
    other = [thunk("fusion", 10, 40, ordinal=1)]
    lines = [x.Line("python", main), x.Line("tf_XLAPjRtCpuClient/1", work), x.Line("tf_XLAPjRtCpuClient/2", other)]
    for line in lines:
        line.timestamp_ns = stamp_ns
    return [x.Plane("/host:CPU", lines)]


@pytest.mark.parametrize("stamp_ns", [0, 1_796_120_813_200_867_981])
def test_the_cpu_runs_ops_on_threads_and_steps_are_annotated(
    tmp_path: Path, xspaces: ModuleType, stamp_ns: int
) -> None:
    tables = load(written(tmp_path / "h.xplane.pb", xspaces.space(cpu_planes(xspaces, stamp_ns))))
    times = tables["op_times"].set_index(["device", "instruction"])
    assert times.loc[("CPU:0", "fusion"), "self_ps"] == 55 * NS
    assert times.loc[("CPU:0", "fusion"), "total_ps"] == 60 * NS
    assert times.loc[("CPU:1", "fusion"), "self_ps"] == 40 * NS
    steps = tables["steps"]
    assert list(steps[steps["device"].isna()]["step"]) == [5, 6]
    own = steps[steps["device"] == "CPU:0"]
    assert list(own["busy_ps"]) == [30 * NS, 30 * NS]
    assert list(own["start_ps"]) == [0, 100 * NS]
    assert set(steps["basis"]) == {"annotation step"}
    events = tables["events"].set_index("event")
    assert list(events.loc["fusion", "step"]) == [5, 6, 5]
    assert list(events.loc["fusion", "run_id"]) == [10, 110, 10]
    assert events.loc["wait", "instruction"] is None or pd.isna(events.loc["wait", "instruction"])


def chrome(x: ModuleType, events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    heads = [
        {"ph": "M", "pid": 1, "name": "process_name", "args": {"name": "/device:TPU:0"}},
        {"ph": "M", "pid": 1, "tid": 1, "name": "thread_name", "args": {"name": "XLA Modules"}},
        {"ph": "M", "pid": 1, "tid": 2, "name": "thread_name", "args": {"name": "XLA Ops"}},
    ]
    return [*heads, *events, {}]


def as_chrome(x: ModuleType, plane: Any) -> list[dict[str, Any]]:
    """What the profiler makes of a TPU's plane: texts for all arguments, the short name for the event."""
    out = []
    for tid, line in enumerate(plane.lines, 1):
        for event in line.events:
            held = plane.metadata.get(event.name)
            arguments = {name: str(value) for name, value in {**(held.stats if held else {}), **event.stats}.items()}
            if held:
                arguments.pop("program_id")
                arguments["long_name"] = event.name
            name = held.display_name if held else event.name
            span = {"ts": event.offset_ps / 1e6, "dur": event.duration_ps / 1e6}
            out.append({"ph": "X", "pid": 1, "tid": tid, "name": name, **span, "args": arguments})
    return chrome(x, out)


@pytest.mark.parametrize("name", ["h.trace.json", "h.trace.json.gz"])
def test_chrome_json_gives_the_same_tables(tmp_path: Path, xspaces: ModuleType, name: str) -> None:
    plane = tpu_plane(xspaces)
    text = json.dumps({"displayTimeUnit": "ns", "traceEvents": as_chrome(xspaces, plane)}).encode()
    theirs = load(written(tmp_path / "x" / "h.xplane.pb", xspaces.space([plane])))
    ours = load(written(tmp_path / "c" / name, gzip.compress(text) if name.endswith("gz") else text))
    for table in ("op_times", "steps", "collectives"):
        pd.testing.assert_frame_equal(ours[table], theirs[table])
    kept = [
        "plane",
        "line",
        "event",
        "start_ps",
        "duration_ps",
        "module",
        "program_id",
        "run_id",
        "step",
        "instruction",
    ]
    one, other = (
        frame["events"][kept].astype(object).where(frame["events"][kept].notna(), None) for frame in (ours, theirs)
    )
    runs = one["line"] == "XLA Ops"
    pd.testing.assert_frame_equal(one[runs], other[runs])


def test_chrome_json_is_read_leniently(tmp_path: Path, xspaces: ModuleType) -> None:
    events = json.dumps(as_chrome(xspaces, tpu_plane(xspaces)))
    whole = '{"traceEvents": ' + events.replace("model.py", "mo\ndel\t.py").replace("\\n", "\n").replace("\\t", "\t")
    tables = load(written(tmp_path / "h.trace.json", (whole + "}").encode()))
    assert len(tables["op_times"]) == 5
    assert tables["problems"].empty
    cut = load(written(tmp_path / "cut.trace.json", whole[: len(whole) * 2 // 3].encode()))
    assert 0 < len(cut["op_times"]) <= 5
    assert "what follows is not read" in cut["problems"]["consequence"].iloc[0]


def test_a_million_events_of_chrome_json_are_said_to_be_not_all(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, xspaces: ModuleType
) -> None:
    monkeypatch.setattr("hlotrace.parsers.chrome_trace.MOST_EVENTS", 14)
    text = json.dumps({"traceEvents": as_chrome(xspaces, tpu_plane(xspaces))})
    problems = load(written(tmp_path / "h.trace.json", text.encode()))["problems"]
    assert "the profiler stops writing this format" in problems["what"].iloc[0]


def seeds(x: ModuleType) -> list[bytes]:
    json_text = json.dumps({"traceEvents": as_chrome(x, tpu_plane(x))}).encode()
    return [x.space([tpu_plane(x)], "h"), x.space(cpu_planes(x)), json_text]


def damaged(whole: bytes, dice: random.Random) -> bytes:
    data = bytearray(whole)
    for _ in range(dice.choice([1, 2, 5, 30])):
        at = dice.randrange(len(data))
        pieces = [bytes([dice.randrange(256)]), b"\xff", b"\x00", b"9e99", b"null", b"[", b'"']
        data[at : at + 1] = dice.choice(pieces)
    return bytes(data[: dice.randrange(len(data))] if dice.random() < 0.2 else data)


def test_tables_of_damaged_traces_never_do_worse_than_an_error(xspaces: ModuleType) -> None:
    dice = random.Random(11)
    columns = ALL_TABLES["instructions"].arrow_schema().empty_table().select(INSTRUCTION_COLUMNS)
    for _ in range(1500):
        data = damaged(dice.choice(seeds(xspaces)), dice)
        try:
            if data[:1] == b"{":
                events = ChromeEvents(io.BytesIO(data), "x")
                trace = from_chrome.trace_of(events, "h", events.problems)
            else:
                trace = from_xplane.trace_of(read_space(data, place="x"), "h")
            traced = Traced([trace], [], columns)
            traced.summaries()
            traced.events()
        except ParseError:
            continue
