"""Opening anything: bundles, dump directories, files, archives, remote places; and what is not HLO."""

from __future__ import annotations

import bz2
import gzip
import io
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import fsspec
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import hlotrace
from hlotrace import bundle
from hlotrace._cache import Cache
from hlotrace._open import CACHE_NAME, open_path
from hlotrace.errors import HlotraceError, MissingDependency
from hlotrace.load import Tables, load
from hlotrace.tables import ALL_TABLES, TRACE_TABLES

DATA = Path(__file__).parent / "data"
CPU, V5E = DATA / "scan-cpu", DATA / "scan-v5e"
AFTER = next(CPU.glob("*cpu_after_optimizations.txt"))
PROTO = next(CPU.glob("*cpu_after_optimizations.hlo.pb"))


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's cache directory, away from the real one."""
    monkeypatch.setenv("HLOTRACE_CACHE_DIR", str(tmp_path / "user-cache"))
    return tmp_path / "user-cache"


@pytest.fixture
def no_parsing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is asked for has to come from the cache."""

    def fail(*_: object) -> None:
        raise AssertionError("parsed again")

    monkeypatch.setattr("hlotrace._assemble.assemble", fail)


def manifest() -> bundle.Manifest:
    programs = [
        bundle.Program(
            module=f"jit_model.{target}",
            name="jit_model",
            function="model",
            defined_at="model.py:12",
            target=target,
            platform=platform,
            device_kind=kind,
            device_count=1,
            arguments=[bundle.Argument("x", [16, 128], "bfloat16")],
            compile_ns=5_000_000,
            memory_analysis={"temp_size_in_bytes": 4096},
        )
        for target, platform, kind in (("cpu", "cpu", "cpu"), ("v5e:2x2", "tpu", "TPU v5 lite"))
    ]
    others = [bundle.OtherCompile("convert_element_type", "eager", 3)]
    return bundle.Manifest("2026-01-02T03:04:05+00:00", "complete", ["model.py"], {}, {}, [], programs, others)


@pytest.fixture
def made_bundle(tmp_path: Path) -> Path:
    """A bundle of the same function for two targets."""
    root = tmp_path / "made.hlotrace"
    written = manifest()
    for program, source in zip(written.programs, (CPU, V5E), strict=True):
        shutil.copytree(source, root / "programs" / program.module)
    bundle.write_manifest(root, written)
    return root


def counts(tables: Tables) -> dict[str, int]:
    return {name: len(tables.arrow(name)) for name in ALL_TABLES}


def same(tables: Tables, other: Tables) -> bool:
    """Whether all rows are alike, whatever the module is called and wherever its files are."""
    dropped = {"module", "directory", "file"}
    return all(
        tables.arrow(name).select(kept).equals(other.arrow(name).select(kept))
        for name in ALL_TABLES
        if (kept := [column for column in ALL_TABLES[name].column_names if column not in dropped])
    )


# What opens


@pytest.mark.parametrize("directory", [CPU, V5E])
def test_a_dump_directory_opens(directory: Path) -> None:
    tables = load(directory)
    row = tables["modules"].iloc[0]
    assert len(tables["modules"]) == 1
    assert row["name"] == "jit_model"
    assert row["stages"][0] == "before_optimizations"
    empty = {"problems", "compilations", "flags", *TRACE_TABLES} | ({"predictions"} if directory == CPU else set())
    assert all(count for name, count in counts(tables).items() if name not in empty)
    assert tables.manifest is None


def test_the_stages_follow_the_pipeline_and_the_last_one_is_final() -> None:
    row = load(V5E)["modules"].iloc[0]
    assert list(row["stages"]) == ["before_optimizations", "after_optimizations", "after_codegen"]
    assert row["final_stage"] == "after_codegen"
    assert load(CPU)["modules"].iloc[0]["final_stage"] == "after_optimizations"


def test_the_platform_and_the_target_come_from_the_files() -> None:
    assert load(CPU)["modules"].iloc[0]["platform"] == "cpu"
    row = load(V5E)["modules"].iloc[0]
    assert row["platform"] == "tpu"
    assert row["target"] == "v5e:2x2"


def test_a_bundle_opens_with_its_manifest(made_bundle: Path) -> None:
    tables = load(made_bundle)
    modules = tables["modules"].set_index("module")
    assert list(modules.index) == ["jit_model.cpu", "jit_model.v5e:2x2"]
    assert modules["compile_ns"].tolist() == [5_000_000, 5_000_000]
    assert modules["compiler_temp_bytes"].tolist() == [4096, 4096]
    assert tables.manifest == manifest()


def test_a_program_whose_folder_is_missing_is_a_problem(made_bundle: Path) -> None:
    shutil.rmtree(made_bundle / "programs" / "jit_model.cpu")
    (problem,) = load(made_bundle)["problems"].query("file == 'programs/jit_model.cpu'").to_dict("records")
    assert problem["what"] == "the folder is not there"


@pytest.mark.parametrize("kept", [0.3, 0.6, 0.97])
def test_a_cut_buffer_assignment_does_not_look_whole(tmp_path: Path, kept: float) -> None:
    shutil.copytree(CPU, tmp_path / "dump")
    whole = load(tmp_path / "dump")["modules"].iloc[0]
    path = next((tmp_path / "dump").glob("*-buffer-assignment.txt"))
    text = path.read_text().partition("Total bytes used:")[0]
    path.write_text(text[: int(kept * len(text))])
    cut = load(tmp_path / "dump")["modules"].iloc[0]
    assert (whole["buffers_from"], cut["buffers_from"]) == ("compiler", "incomplete")


def test_the_buffers_of_a_lone_text_are_our_model() -> None:
    row = load(AFTER)["modules"].iloc[0]
    assert (row["buffers_from"], row["live_ranges_from"]) == ("model", "model")


def test_partitions_are_those_of_the_stage_that_states_most(tmp_path: Path) -> None:
    shutil.copytree(CPU, tmp_path / "dump")
    for path in (tmp_path / "dump").glob("*optimizations.txt"):
        name, rest = path.read_text().split(",", 1)
        count = 32 if "before" in path.name else 16
        path.write_text(f"{name}, num_partitions={count},{rest}")
    assert load(tmp_path / "dump")["modules"].iloc[0]["num_partitions"] == 32


def test_compilations_list_programs_and_what_was_only_counted(made_bundle: Path) -> None:
    compilations = load(made_bundle)["compilations"]
    assert compilations["kind"].tolist() == ["program", "program", "eager"]
    assert compilations["module"].isna().tolist() == [False, False, True]
    assert compilations["defined_line"].tolist()[:2] == [12, 12]
    assert compilations["signature"].iloc[0] == "x: bfloat16[16,128]"


def test_a_module_can_be_selected(made_bundle: Path) -> None:
    tables = load(made_bundle).select("jit_model.cpu")
    assert set(tables["instructions"]["module"]) == {"jit_model.cpu"}
    assert len(tables["modules"]) == 1


def test_selecting_an_unknown_module_names_the_nearest(made_bundle: Path) -> None:
    with pytest.raises(HlotraceError, match=r"no module is named 'jit_model.v5e'. Known: jit_model.v5e:2x2"):
        load(made_bundle).select("jit_model.v5e")


def test_the_programs_folder_of_a_bundle_opens_without_the_manifest(made_bundle: Path) -> None:
    tables = load(made_bundle / "programs")
    assert sorted(tables["modules"]["target"].fillna("")) == ["", "v5e:2x2"]
    assert tables["modules"]["module"].is_unique


def test_a_directory_that_holds_one_bundle_further_down_opens(made_bundle: Path, tmp_path: Path) -> None:
    (tmp_path / "outer" / "deep").mkdir(parents=True)
    made_bundle.rename(tmp_path / "outer" / "deep" / "made.hlotrace")
    assert load(tmp_path / "outer").manifest == manifest()


def test_a_directory_that_holds_one_dump_directory_further_down_opens(tmp_path: Path) -> None:
    shutil.copytree(CPU, tmp_path / "outer" / "deep" / "dump")
    assert same(load(tmp_path / "outer"), load(CPU))


def test_two_bundles_below_are_ambiguous(made_bundle: Path, tmp_path: Path) -> None:
    shutil.copytree(made_bundle, tmp_path / "outer" / "a")
    shutil.copytree(made_bundle, tmp_path / "outer" / "b")
    with pytest.raises(HlotraceError, match=r"holds 2 bundles.*Name one of them: a, b"):
        load(tmp_path / "outer")


def test_two_dump_directories_below_are_ambiguous() -> None:
    with pytest.raises(HlotraceError, match=r"holds 2 dump directories.*Name one of them: scan-cpu, scan-v5e"):
        load(DATA)


def test_one_hlo_file_opens_as_the_stage_its_name_says() -> None:
    tables = load(AFTER)
    row = tables["modules"].iloc[0]
    assert list(row["stages"]) == ["after_optimizations"]
    final = load(CPU)["instructions"].query("stage == 'after_optimizations'")
    assert tables["instructions"]["instruction"].tolist() == final["instruction"].tolist()


def test_a_proto_opens_like_the_text_of_the_same_module() -> None:
    columns = ["computation", "instruction", "opcode", "shape", "operands", "op_name", "source_line"]
    text, proto = (load(path).arrow("instructions").select(columns) for path in (AFTER, PROTO))
    order = [("computation", "ascending"), ("instruction", "ascending")]
    assert text.sort_by(order).equals(proto.sort_by(order))


@pytest.mark.parametrize("name", ["model.hlo", "compiled.txt", "anything"])
def test_a_scheduled_text_of_any_name_is_after_optimisation(tmp_path: Path, name: str) -> None:
    shutil.copy(AFTER, tmp_path / name)
    assert load(tmp_path / name)["modules"].iloc[0]["final_stage"] == "after_optimizations"


def test_an_unscheduled_text_of_any_name_is_before_optimisation(tmp_path: Path) -> None:
    shutil.copy(next(CPU.glob("*before_optimizations.txt")), tmp_path / "model.txt")
    assert load(tmp_path / "model.txt")["modules"].iloc[0]["final_stage"] == "before_optimizations"


@pytest.mark.parametrize(
    ("name", "platform"),
    [
        ("module_0001.m.sm_9.0_gpu_after_optimizations.txt", "gpu"),
        ("module_0001.m.cpu_after_optimizations.txt", "cpu"),
        ("module_0001.m.cl_933746096.after_optimizations.txt", "tpu"),
    ],
)
def test_the_name_of_a_lone_dump_file_says_its_platform(tmp_path: Path, name: str, platform: str) -> None:
    (tmp_path / name).write_text("HloModule m\n\nENTRY e {\n  ROOT p = f32[4] parameter(0)\n}\n")
    assert load(tmp_path / name)["modules"]["platform"].tolist() == [platform]


def test_a_file_of_several_modules_gives_each_a_name_of_its_own(tmp_path: Path) -> None:
    module = "HloModule m\n\nENTRY e {\n  ROOT p = f32[4] parameter(0)\n}\n\n"
    (tmp_path / "two.hlo").write_text(module + module)
    modules = load(tmp_path / "two.hlo")["modules"]
    assert modules["name"].tolist() == ["m", "m"]
    assert modules["module"].is_unique


def test_a_directory_of_hlo_files_without_dump_names_opens(tmp_path: Path) -> None:
    for name in ("first", "second"):
        (tmp_path / f"{name}.hlo").write_text(f"HloModule {name}\n\nENTRY e {{\n  ROOT p = f32[4] parameter(0)\n}}\n")
    (tmp_path / "notes.txt").write_text("nothing of interest\n")
    assert sorted(load(tmp_path)["modules"]["name"]) == ["first", "second"]


# Archives and remote places


def tar_of(directory: Path, mode: str) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as archive:  # type: ignore[call-overload]
        archive.add(directory, directory.name)
    return out.getvalue()


@pytest.mark.parametrize(
    ("name", "mode"), [("d.tar.gz", "w:gz"), ("d.tgz", "w:gz"), ("d.tar", "w"), ("d.tar.xz", "w:xz"), ("odd", "w:bz2")]
)
def test_a_tar_archive_opens(tmp_path: Path, name: str, mode: str) -> None:
    (tmp_path / name).write_bytes(tar_of(V5E, mode))
    assert same(load(tmp_path / name), load(V5E))


def test_a_zip_of_a_bundle_opens_with_its_manifest(made_bundle: Path, tmp_path: Path) -> None:
    shutil.make_archive(str(tmp_path / "made"), "zip", made_bundle)
    tables = load(tmp_path / "made.zip")
    assert tables.manifest == manifest()
    assert load(tmp_path / "made.zip").manifest == manifest()
    assert same(tables, load(made_bundle))


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress])
def test_a_compressed_hlo_file_opens(tmp_path: Path, compress: object) -> None:
    (tmp_path / f"{AFTER.name}.gz").write_bytes(compress(AFTER.read_bytes()))  # type: ignore[operator]
    assert same(load(tmp_path / f"{AFTER.name}.gz"), load(AFTER))


def test_an_archive_leaves_nothing_behind_in_the_temporary_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    (tmp_path / "d.tar.gz").write_bytes(tar_of(CPU, "w:gz"))
    load(tmp_path / "d.tar.gz")
    assert list((tmp_path / "tmp").iterdir()) == []


def test_a_member_cannot_leave_the_archives_directory(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "evil.zip", "w") as archive:
        archive.writestr("../../escaped.txt", "HloModule m")
        archive.writestr("m.hlo", "HloModule m\n\nENTRY e {\n  ROOT p = f32[4] parameter(0)\n}\n")
    assert len(load(tmp_path / "evil.zip")["modules"]) == 1
    assert not list(tmp_path.parent.rglob("escaped.txt"))


@pytest.fixture
def memory() -> Iterator[fsspec.AbstractFileSystem]:
    fs = fsspec.filesystem("memory")
    yield fs
    fs.store.clear()
    fs.pseudo_dirs[:] = [""]


def test_a_remote_directory_opens(memory: fsspec.AbstractFileSystem, cache: Path) -> None:
    memory.put(str(V5E), "/bucket/run", recursive=True)
    assert same(load("memory://bucket/run"), load(V5E))
    assert not memory.exists(f"/bucket/run/{CACHE_NAME}")


def test_a_remote_bundle_opens_with_its_manifest(memory: fsspec.AbstractFileSystem, made_bundle: Path) -> None:
    memory.put(str(made_bundle), "/bucket/made", recursive=True)
    assert load("memory://bucket/made").manifest == manifest()
    assert same(load("memory://bucket/made"), load(made_bundle))


def test_a_remote_file_and_a_remote_archive_open(memory: fsspec.AbstractFileSystem) -> None:
    memory.pipe(f"/bucket/{AFTER.name}", AFTER.read_bytes())
    memory.pipe("/bucket/d.tar.gz", tar_of(V5E, "w:gz"))
    assert same(load(f"memory://bucket/{AFTER.name}"), load(AFTER))
    assert same(load("memory://bucket/d.tar.gz"), load(V5E))


@pytest.mark.usefixtures("memory")
def test_a_remote_place_that_is_not_there_is_one_line() -> None:
    with pytest.raises(HlotraceError, match=r"^memory://bucket/none: no such file or directory"):
        load("memory://bucket/none")


@pytest.mark.parametrize(
    ("url", "module", "extra"), [("gs://b/x", "gcsfs", "gcs"), ("s3://b/x", "s3fs", "s3")], ids=["gs", "s3"]
)
def test_a_store_whose_package_is_missing_names_the_extra(
    url: str, module: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, module, None)
    with pytest.raises(MissingDependency, match=rf'pip install "hlotrace\[{extra}\]"'):
        load(url)


def test_an_unknown_protocol_is_one_line() -> None:
    with pytest.raises(HlotraceError, match=r"^nosuch://x: "):
        load("nosuch://x")


# What does not open


def test_a_path_that_is_not_there_names_the_nearest(tmp_path: Path) -> None:
    (tmp_path / "layer.hlotrace").mkdir()
    with pytest.raises(HlotraceError, match=r"layr.hlotrace: no such file or directory. Nearest here: layer.hlotrace."):
        load(tmp_path / "layr.hlotrace")


NOT_HLO = {
    "empty.txt": (b"", "an empty file (0 bytes)"),
    "pointer.hlo.pb": (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", "a Git LFS pointer"),
    "page.txt": (b"<!DOCTYPE html>\n<html><body>404</body></html>", "an HTML page"),
    "kernel.o": (b"\x7fELF\x02\x01\x01" + bytes(64), "an ELF object file"),
    "noise.bin": (bytes(range(256)) * 8, "a binary file"),
    "damaged.hlo.pb": (b"\x0a\xef\xbf\xbd\x00\xef\xbf\xbd" * 9, "a binary file damaged by a conversion to text"),
    "host.xplane.riegeli": (b"\x83\xaf\x70\xd1" + bytes(16), "a profiler trace in Riegeli records"),
    "data.json": (b'{"a": 1}', "JSON"),
    "lowered.txt": (
        b"module @jit_f {\n  func.func public @main() {\n    stablehlo.return\n  }\n}\n",
        "MLIR (StableHLO)",
    ),
    "model.py": (b"import jax\n", "a Python script"),
    "notes.txt": (b"some notes\n", "text without an HloModule line"),
    "module_0001.f.after_optimizations-live-range.txt": (b"HloLiveRange (max 3):\n", "a file that XLA writes beside"),
    "ir.ll": (b"; ModuleID = 'x'\n", "LLVM IR"),
}


@pytest.mark.parametrize("name", NOT_HLO)
def test_a_file_that_is_not_hlo_is_called_what_it_is(tmp_path: Path, name: str) -> None:
    content, what = NOT_HLO[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(HlotraceError) as caught:
        load(tmp_path / name)
    assert what in str(caught.value)
    assert str(caught.value).startswith(f"{tmp_path / name}: expected HLO, found ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["d.tar.gz", "d.zip"])
def test_a_truncated_archive_is_called_damaged(tmp_path: Path, name: str) -> None:
    shutil.make_archive(str(tmp_path / "whole"), "zip" if name.endswith("zip") else "gztar", CPU)
    whole = next(path for path in tmp_path.iterdir() if path.name.startswith("whole"))
    (tmp_path / name).write_bytes(whole.read_bytes()[: whole.stat().st_size // 2])
    with pytest.raises(HlotraceError, match="a damaged archive"):
        load(tmp_path / name)["modules"]


def test_a_directory_without_hlo_says_what_it_expected(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("nothing\n")
    with pytest.raises(HlotraceError, match="no HLO in it"):
        load(tmp_path)


def test_a_manifest_of_nothing_is_called_what_it_is(made_bundle: Path) -> None:
    (made_bundle / "manifest.json").write_text("{}")
    with pytest.raises(HlotraceError, match="JSON without a format_version"):
        _ = load(made_bundle)["modules"]


def test_a_manifest_that_is_no_json_is_one_line(made_bundle: Path) -> None:
    (made_bundle / "manifest.json").write_text("{")
    with pytest.raises(HlotraceError, match=r"manifest.json:1:2: expected JSON"):
        _ = load(made_bundle)["compilations"]


def test_one_unreadable_file_among_others_becomes_a_problem(tmp_path: Path) -> None:
    shutil.copytree(V5E, tmp_path / "dump")
    next((tmp_path / "dump").glob("*.before_optimizations.txt")).write_bytes(b"")
    tables = load(tmp_path / "dump")
    assert list(tables["modules"].iloc[0]["stages"]) == ["after_optimizations", "after_codegen"]
    problem = tables["problems"].iloc[0]
    assert problem["file"].endswith(".before_optimizations.txt")
    assert "0 bytes" in problem["what"]


def test_an_unknown_table_names_the_known_ones() -> None:
    with pytest.raises(HlotraceError, match=r"no table is named 'instruction'. Known: instructions"):
        load(CPU)["instruction"]


# Frames


def test_every_table_has_the_declared_columns_and_dtypes(made_bundle: Path) -> None:
    tables = load(made_bundle)
    dtypes = {
        "string": pd.StringDtype("pyarrow", na_value=np.nan),
        "category": "category",
        "int": pd.Int64Dtype(),
        "float": np.dtype("float64"),
        "bool": pd.BooleanDtype(),
        "strings": pd.ArrowDtype(pa.list_(pa.string())),
        "ints": pd.ArrowDtype(pa.list_(pa.int64())),
    }
    assert list(tables) == list(ALL_TABLES)
    for name, table in ALL_TABLES.items():
        assert tables.arrow(name).schema.equals(table.arrow_schema()), name
        assert dict(tables[name].dtypes) == {column.name: dtypes[column.dtype] for column in table.columns}, name


def test_the_same_frame_comes_back_each_time() -> None:
    tables = load(CPU)
    assert tables["modules"] is tables["modules"]


def test_progress_counts_modules_and_is_silent_when_nothing_is_parsed(made_bundle: Path) -> None:
    seen: list[tuple[int, int]] = []
    _ = load(made_bundle, progress=lambda done, total: seen.append((done, total)))["modules"]
    assert seen == [(1, 2), (2, 2)]
    _ = load(made_bundle, progress=lambda done, total: seen.append((done, total)))["modules"]
    assert len(seen) == 2


def test_hlotrace_load_is_callable_however_it_was_imported() -> None:
    assert isinstance(hlotrace.load(CPU), Tables)
    assert hlotrace.load.load is load  # type: ignore[attr-defined]


# The cache


@pytest.mark.usefixtures("made_bundle")
def test_a_bundle_keeps_its_cache_inside(made_bundle: Path, cache: Path) -> None:
    _ = load(made_bundle)["modules"]
    assert (made_bundle / CACHE_NAME / ".gitignore").read_text() == "*\n"
    assert not cache.exists()


def test_a_raw_dump_directory_is_left_as_it_was(tmp_path: Path, cache: Path) -> None:
    shutil.copytree(CPU, tmp_path / "dump")
    before = sorted((tmp_path / "dump").iterdir())
    load(tmp_path / "dump")
    assert sorted((tmp_path / "dump").iterdir()) == before
    assert cache.is_dir()


def test_the_second_time_nothing_is_parsed(request: pytest.FixtureRequest) -> None:
    first = load(CPU)
    request.getfixturevalue("no_parsing")
    second = load(CPU)
    assert all(second.arrow(name).equals(first.arrow(name)) for name in ALL_TABLES)


def test_a_changed_file_is_parsed_again(tmp_path: Path) -> None:
    file = tmp_path / "m.hlo"
    text = "HloModule m\n\nENTRY e {\n  ROOT p = f32[%d] parameter(0)\n}\n"
    file.write_text(text % 4)
    assert load(file)["instructions"]["logical_bytes"].tolist() == [16]
    file.write_text(text % 8)
    os.utime(file, ns=(1, 1))
    assert load(file)["instructions"]["logical_bytes"].tolist() == [32]


@pytest.mark.parametrize("damage", [b"", b"PAR1 nonsense", None], ids=["empty", "nonsense", "missing"])
def test_a_damaged_cache_is_made_again(cache: Path, damage: bytes | None) -> None:
    whole = load(CPU)
    file = next(cache.rglob("instructions.parquet"))
    if damage is None:
        file.unlink()
    else:
        file.write_bytes(damage)
    assert same(load(CPU), whole)
    assert len(next(cache.rglob("instructions.parquet")).read_bytes()) > 1000


def test_a_flipped_byte_in_the_cache_is_noticed(cache: Path) -> None:
    whole = load(CPU)
    file = next(cache.rglob("computations.parquet"))
    data = bytearray(file.read_bytes())
    data[100] ^= 0xFF
    file.write_bytes(data)
    assert same(load(CPU), whole)


def test_nothing_is_kept_where_nothing_can_be_written(cache: Path, no_parsing: None, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.undo()
    cache.write_text("a file where the directory should be")
    monkeypatch.setenv("HLOTRACE_CACHE_DIR", str(cache))
    assert len(load(CPU)["modules"]) == 1


def test_a_read_only_bundle_is_cached_for_the_user(
    made_bundle: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.access", lambda *_: False)
    _ = load(made_bundle)["modules"]
    assert not (made_bundle / CACHE_NAME).exists()
    assert cache.is_dir()


def test_old_entries_of_the_same_place_are_dropped(tmp_path: Path, cache: Path) -> None:
    file = tmp_path / "m.hlo"
    for size in range(5):
        file.write_text(f"HloModule m\n\nENTRY e {{\n  ROOT p = f32[{10**size}] parameter(0)\n}}\n")
        load(file)
    assert len([entry for entry in next(cache.iterdir()).iterdir() if not entry.name.startswith(".")]) == 2


def test_processes_that_open_the_same_bundle_at_once_agree(made_bundle: Path) -> None:
    expected = len(load(made_bundle)["instructions"])
    shutil.rmtree(made_bundle / CACHE_NAME)
    code = f"import hlotrace; print(len(hlotrace.load({str(made_bundle)!r})['instructions']))"
    opening = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(3)]
    assert [int(process.communicate(timeout=300)[0]) for process in opening] == [expected] * 3
    left = [entry.name for entry in (made_bundle / CACHE_NAME).iterdir() if entry.name.startswith(".")]
    assert left == [".gitignore"]


def test_the_key_follows_names_sizes_and_times(tmp_path: Path) -> None:
    (tmp_path / "a.hlo").write_text("HloModule m")
    key = open_path(tmp_path).content_key()
    os.utime(tmp_path / "a.hlo", ns=(5, 5))
    assert open_path(tmp_path).content_key() != key


def test_a_file_of_the_same_size_and_time_is_another(tmp_path: Path) -> None:
    for name, text in (("a.hlo", "HloModule m"), ("b.hlo", "HloModule n")):
        (tmp_path / name).write_text(text)
        os.utime(tmp_path / name, ns=(5, 5))
    key = open_path(tmp_path / "a.hlo").content_key()
    (tmp_path / "b.hlo").rename(tmp_path / "a.hlo")
    assert open_path(tmp_path / "a.hlo").content_key() != key


def test_a_copied_bundle_has_the_key_of_the_first(made_bundle: Path, tmp_path: Path) -> None:
    copied = shutil.copytree(made_bundle, tmp_path / "copied")
    assert open_path(copied).content_key() == open_path(made_bundle).content_key()


def test_no_cache_is_written_into_a_profiler_log_directory(tmp_path: Path) -> None:
    run = tmp_path / "plugins" / "profile" / "2026_01_01_00_00_00"
    shutil.copytree(CPU, run)
    load(run)
    assert Cache.of(open_path(run)).directory is not None
    assert not list(tmp_path.rglob(CACHE_NAME))


@pytest.mark.parametrize(
    "archive", sorted((Path(__file__).parent.parent / "sample_dumps").glob("*.tar.gz")), ids=lambda path: path.name
)
def test_a_sample_holds_no_cache(archive: Path) -> None:
    with tarfile.open(archive) as tar:
        assert not [name for name in tar.getnames() if "/." in name]
