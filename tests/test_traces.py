"""Opening traces: lone files, log directories, bundles that hold one; what each file is that is none."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import fsspec
import pytest

from hlotrace.errors import HlotraceError
from hlotrace.load import load
from hlotrace.render.text import draw
from hlotrace.views.registry import view_named

HERE = Path(__file__).parent
RUN = "plugins/profile/2026_01_02_03_04_05"


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("HLOTRACE_CACHE_DIR", str(place))
    return place


def space(x: ModuleType, host: str = "", op: str = "dot.1", proto: bytes = b"") -> bytes:
    ops = [x.Event(f"%{op} = f32[] dot(%a, %b)", 1000 * at, 600, {}) for at in range(3)]
    metadata = {ops[0].name: x.Metadata(op, {"program_id": x.Unsigned(9), "hlo_category": "dot"})}
    planes = [
        x.Plane("/device:TPU:0", [x.Line("XLA Ops", ops)], {"device_type_string": "TPU v5 Lite"}, metadata),
        x.Plane("/host:CPU", [x.Line("main", [x.Event("call", 0, 10)])]),
        x.Plane("/host:metadata", metadata={"jit_f(9)": x.Metadata("jit_f(9)", {"Hlo Proto": proto} if proto else {})}),
    ]
    return x.space(planes, host)


def put(path: Path, data: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def shown(path: Path, view: str, **values: object) -> str:
    return draw(view_named(view).build(load(path), **values), width=100, color=False)


def test_a_log_directory_opens_and_is_never_written_into(tmp_path: Path, xspaces: ModuleType, own_cache: Path) -> None:
    logs = tmp_path / "logs"
    put(logs / RUN / "host.xplane.pb", space(xspaces))
    put(logs / RUN / "ALL_HOSTS.op_stats_v2.pb", bytes(range(200)))
    before = sorted(path.relative_to(logs) for path in logs.rglob("*"))
    for _ in range(2):
        tables = load(logs)
        assert list(tables["op_times"]["instruction"]) == ["dot.1"]
        assert tables.traces == (f"{RUN}/host.xplane.pb",)
    assert sorted(path.relative_to(logs) for path in logs.rglob("*")) == before
    assert {path.stem for path in own_cache.rglob("*.parquet")} >= {"op_times", "steps", "collectives"}


def test_the_latest_run_is_read_with_hosts_that_began_seconds_before(tmp_path: Path, xspaces: ModuleType) -> None:
    runs = {"2026_01_02_03_04_05": "a", "2026_01_02_03_04_01": "b", "2026_01_01_00_00_00": "a"}
    for run, host in runs.items():
        put(tmp_path / "plugins/profile" / run / f"{host}.xplane.pb", space(xspaces, host))
    tables = load(tmp_path)
    assert sorted(tables["op_times"]["host"]) == ["a", "b"]
    assert "1 other run is in it: plugins/profile/2026_01_01_00_00_00" in tables["problems"]["what"].iloc[-1]


def test_an_empty_xplane_gives_way_to_the_json_beside_it(tmp_path: Path) -> None:
    heads = [
        {"ph": "M", "pid": 1, "name": "process_name", "args": {"name": "/device:TPU:0"}},
        {"ph": "M", "pid": 1, "tid": 2, "name": "thread_name", "args": {"name": "XLA Ops"}},
        {"ph": "X", "pid": 1, "tid": 2, "ts": 1, "dur": 2, "name": "dot.1", "args": {"hlo_category": "dot"}},
    ]
    put(tmp_path / RUN / "h.xplane.pb", b"")
    put(tmp_path / RUN / "h.trace.json.gz", gzip.compress(json.dumps({"traceEvents": heads}).encode()))
    tables = load(tmp_path)
    assert list(tables["op_times"]["instruction"]) == ["dot.1"]
    assert tables["op_times"]["total_ps"].iloc[0] == 2_000_000


def test_a_remote_log_directory_opens(xspaces: ModuleType) -> None:
    memory = fsspec.filesystem("memory")
    memory.pipe(f"/logs/{RUN}/host.xplane.pb", space(xspaces))
    try:
        assert list(load("memory://logs")["op_times"]["instruction"]) == ["dot.1"]
    finally:
        memory.rm("/logs", recursive=True)


@pytest.fixture
def traced_bundle(tmp_path: Path, xspaces: ModuleType) -> Path:
    """The sample of the CPU's scan with a trace of it."""
    bundle = tmp_path / "scan.hlotrace"
    shutil.copytree(HERE / "data" / "scan-cpu", bundle / "programs" / "jit_f")
    manifest = {
        "created": "2026-01-01T00:00:00+00:00", "status": "complete", "argv": ["model.py"], "versions": {},
        "environment": {}, "targets": [], "programs": [], "profile_steps": 3, "format_version": 1,
    }  # fmt: skip
    (bundle / "manifest.json").write_text(json.dumps(manifest))
    put(bundle / "profile" / RUN / "vm.xplane.pb", space(xspaces))
    return bundle


def test_a_bundle_reads_its_trace_only_when_it_is_asked_for(
    traced_bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = __import__("hlotrace._traces", fromlist=["assemble_traces"]).assemble_traces

    def fail(*_: object, **__: object) -> None:
        raise AssertionError("the trace was read")

    monkeypatch.setattr("hlotrace._traces.assemble_traces", fail)
    assert "A trace of 3 steps is in it" in shown(traced_bundle, "summary")
    for view in ("ops", "fusions", "memory", "modules"):
        shown(traced_bundle, view)
    monkeypatch.setattr("hlotrace._traces.assemble_traces", real)
    assert "dot.1" in shown(traced_bundle, "profile", by="op")
    monkeypatch.setattr("hlotrace._traces.assemble_traces", fail)
    assert "dot.1" in shown(traced_bundle, "profile", by="op")
    assert len(list((traced_bundle / ".hlotrace-cache").iterdir())) == 3


def test_an_archive_of_a_bundle_gives_its_trace(traced_bundle: Path, tmp_path: Path) -> None:
    packed = shutil.make_archive(str(tmp_path / "packed"), "gztar", traced_bundle.parent, traced_bundle.name)
    tables = load(packed)
    assert len(tables.traces) == 1
    assert list(tables["op_times"]["instruction"]) == ["dot.1"]
    assert load(packed).traces == tables.traces


def test_a_program_without_hlo_can_be_chosen(tmp_path: Path, xspaces: ModuleType) -> None:
    path = put(tmp_path / "h.xplane.pb", space(xspaces))
    assert "dot.1" in shown(path, "profile", by="op", module="jit_f")
    with pytest.raises(HlotraceError, match=r"no module is named 'jit_g'. Known: jit_f"):
        shown(path, "profile", module="jit_g")


def test_a_trace_brings_its_hlo(tmp_path: Path, xspaces: ModuleType, shared_data: Path) -> None:
    proto = next(shared_data.glob("xprof/hlo_protos/jit_f*")).read_bytes()
    tables = load(put(tmp_path / "h.xplane.pb", space(xspaces, proto=proto, op="copy-done.2")))
    assert list(tables["modules"]["module"]) == ["jit_f"]
    assert list(tables["modules"]["program_id"]) == [9]
    assert list(tables["modules"]["device_kind"]) == ["TPU v5 lite"]
    assert len(tables["instructions"]) == 31
    row = tables["op_times"].iloc[0]
    assert (row["module"], row["category"]) == ("jit_f", "async copy")


NOT_TRACES: dict[str, tuple[str, Callable[[bytes], bytes], str]] = {
    "empty": ("h.xplane.pb", lambda _: b"", "an empty file (0 bytes)"),
    "pointer": ("h.xplane.pb", lambda _: b"version https://git-lfs.github.com/spec/v1\n", "a Git LFS pointer"),
    "page": ("h.xplane.pb", lambda _: b"<!DOCTYPE html><html>", "an HTML page"),
    "text": (
        "h.xplane.pb",
        lambda data: data.decode("utf-8", "replace").encode()[:5],
        "damaged by a conversion to text",
    ),
    "lines": ("h.xplane.pb", lambda data: data.replace(b"\n", b"\r\n"), "damaged by a conversion to text"),
    "noise": ("h.xplane.pb", lambda _: bytes(range(255, 0, -1)), "byte 0: expected a profiler trace"),
    "cut gzip": ("h.xplane.pb.gz", lambda data: gzip.compress(data)[:-20], "a damaged archive"),
    "no list": ("h.trace.json", lambda _: b'{"a": 1}', "no list of events"),
    "empty json": ("h.trace.json.gz", lambda _: b"", "an empty file (0 bytes)"),
}


@pytest.mark.parametrize("kind", NOT_TRACES)
def test_what_is_no_trace_is_called_what_it_is(tmp_path: Path, xspaces: ModuleType, kind: str) -> None:
    name, made, expected = NOT_TRACES[kind]
    path = put(tmp_path / name, made(b"\xff" * (kind == "text") + space(xspaces)))
    with pytest.raises(HlotraceError) as caught:
        load(path)["op_times"]
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)
    assert name.removesuffix(".gz") in str(caught.value)


def test_a_cut_trace_is_read_up_to_the_cut_and_marked(tmp_path: Path, xspaces: ModuleType) -> None:
    whole = space(xspaces)
    tables = load(put(tmp_path / "h.xplane.pb", whole[:-25]))
    assert len(tables["op_times"]) == 1
    assert f"the end of the file at byte {len(whole) - 25:,}" in " ".join(tables["problems"]["what"])
    assert "problem" in shown(tmp_path / "h.xplane.pb", "profile")


def test_a_packed_trace_opens_with_or_without_saying_so(tmp_path: Path, xspaces: ModuleType) -> None:
    for name in ("h.xplane.pb.gz", "h.xplane.pb"):
        assert len(load(put(tmp_path / name, gzip.compress(space(xspaces))))["op_times"]) == 1


def test_a_trace_of_the_host_alone_says_so(tmp_path: Path, xspaces: ModuleType) -> None:
    x = xspaces
    path = put(tmp_path / "h.xplane.pb", x.space([x.Plane("/host:CPU", [x.Line("main", [x.Event("call", 0, 5)])])]))
    assert "no device planes" in load(path)["problems"]["what"].iloc[0]
    assert len(load(path)["events"]) == 1
    for view in ("summary", "profile", "steps", "collectives"):
        assert shown(path, view)


def test_views_without_a_trace_say_how_to_get_one() -> None:
    for view in ("profile", "steps", "collectives"):
        text = shown(HERE / "data" / "scan-cpu", view)
        assert "There is no trace" in text
        assert "hlotrace capture" in text


SHARED = ["xprof/tpu_inference_2.xplane.pb", "reactant/*", "tracelens/*.xplane.pb", "tpu-inference/*", "xprof"]


@pytest.mark.parametrize("pattern", SHARED)
@pytest.mark.parametrize("view", ["summary", "profile", "steps", "collectives", "problems"])
def test_real_traces_are_shown(shared_data: Path, pattern: str, view: str) -> None:
    for path in sorted(shared_data.glob(pattern)):
        assert shown(path, view)
