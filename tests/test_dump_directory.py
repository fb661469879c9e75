"""Dump directories: which file belongs to which module, by names of every backend."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hlotrace.parsers.dump_directory import find_modules


def found(*names: str) -> list[tuple[int, str, list[str]]]:
    return [(m.number, m.name, m.stages) for m in find_modules(dict.fromkeys(names, 10))]


@pytest.mark.parametrize(
    ("file", "name", "stage", "platform"),
    [
        ("module_0000.jit_f.before_optimizations.txt", "jit_f", "before_optimizations", None),
        ("module_0000.jit_f.cl_933746096.after_codegen.txt", "jit_f", "after_codegen", None),
        ("module_0003.jit_f.cpu_after_optimizations.txt", "jit_f", "after_optimizations", "cpu"),
        (
            "module_0016.jit_train_step.sm_9.0_gpu_after_optimizations.hlo.pb",
            "jit_train_step",
            "after_optimizations",
            "gpu",
        ),
        ("module_0016.jit_f.sm_10.0a_gpu_after_optimizations.txt", "jit_f", "after_optimizations", "gpu"),
        ("module_0016.jit_f.gfx942_gpu_after_optimizations.txt", "jit_f", "after_optimizations", "gpu"),
        (
            "module_0262.jit_train_step.cl_854318611.after_optimizations.hlo",
            "jit_train_step",
            "after_optimizations",
            None,
        ),
        (
            "module_12345.pjit__lambda_.v1.2-rc.cl_1.after_optimizations.txt",
            "pjit__lambda_.v1.2-rc",
            "after_optimizations",
            None,
        ),
        (
            "module_0007.SyncTensorsGraph.31.before_optimizations.txt",
            "SyncTensorsGraph.31",
            "before_optimizations",
            None,
        ),
        ("a/b/module_0001.jit_cpu_f.cpu_after_optimizations.txt", "jit_cpu_f", "after_optimizations", "cpu"),
    ],
)
def test_a_stage_is_read_from_both_ends_of_its_name(file: str, name: str, stage: str, platform: str | None) -> None:
    (module,) = find_modules({file: 1})
    assert (module.name, module.stages, module.platform) == (name, [stage], platform)
    assert module.path_of(stage) == file


@given(st.from_regex(r"[A-Za-z_][A-Za-z0-9_.\-]{0,30}[A-Za-z0-9_]", fullmatch=True), st.integers(0, 99999))
def test_any_module_name_comes_back(name: str, number: int) -> None:
    (module,) = find_modules({f"module_{number:04}.{name}.cl_7.after_codegen.txt": 1})
    assert (module.number, module.name) == (number, name)


def test_files_of_one_module_stand_together() -> None:
    head = "module_0000.jit_f.cl_9"
    files = [
        f"{head}.before_optimizations.txt",
        f"{head}.after_optimizations.txt",
        f"{head}.after_optimizations.hlo.pb",
        f"{head}.after_optimizations_after_buffer_assignment.txt",
        f"{head}.after_optimizations-buffer-assignment.txt",
        f"{head}.after_optimizations-buffer-assignment-values.txt",
        f"{head}.after_optimizations-live-range.txt",
        f"{head}.after_optimizations-memory-usage-report.pb",
        f"{head}.after_optimizations-memory-usage-report.txt",
        f"{head}.after_codegen.txt",
        f"{head}.flagfile",
        f"{head}.tpu_comp_env.txt",
        f"{head}/module.mlir",
        "module_0000.jit_f.__compute_module.ir-with-opt.ll",
        "compiled.txt",
    ]
    (module,) = find_modules(dict.fromkeys(files, 10))
    assert module.stages == ["before_optimizations", "after_optimizations", "after_codegen"]
    assert set(module.side) == {"buffer-assignment", "buffer-assignment-values", "live-range", "memory-usage-report"}
    assert set(module.compile) == {"flagfile", "tpu_comp_env"}
    assert module.path_of("after_optimizations").endswith(".txt")
    assert module.size == 30


def test_pass_snapshots_are_listed_in_order_text_before_proto() -> None:
    head = "module_0000.jit_f.cl_9"
    files = [
        f"{head}.0010.simplification.after_dce.before_fusion.v2.txt",
        f"{head}.0001.Before_X64.rewriter.after_pipeline-start.before_topk-decomposer.hlo.pb",
        f"{head}.0001.Before_X64.rewriter.after_pipeline-start.before_topk-decomposer.txt",
        f"{head}.before_optimizations.txt",
    ]
    (module,) = find_modules(dict.fromkeys(files, 1))
    assert [(s.sequence, s.pipeline, s.pass_after, s.pass_before) for s in module.passes] == [
        (1, "Before_X64.rewriter", "pipeline-start", "topk-decomposer"),
        (10, "simplification", "dce", "fusion.v2"),
    ]
    assert all(snapshot.path.endswith(".txt") for snapshot in module.passes)


def test_before_and_after_under_different_numbers_are_one_module() -> None:
    assert found(
        "module_0021.jit_f.before_optimizations.txt",
        "module_0022.jit_g.before_optimizations.txt",
        "module_0023.jit_f.cpu_after_optimizations.txt",
        "module_0024.jit_g.cpu_after_optimizations.txt",
        "module_0025.jit_f.before_optimizations.txt",
        "module_0026.jit_f.cpu_after_optimizations.txt",
    ) == [
        (23, "jit_f", ["before_optimizations", "after_optimizations"]),
        (24, "jit_g", ["before_optimizations", "after_optimizations"]),
        (26, "jit_f", ["before_optimizations", "after_optimizations"]),
    ]


def test_a_file_before_optimisation_is_not_given_to_an_earlier_module() -> None:
    assert found("module_0003.jit_f.cpu_after_optimizations.txt", "module_0004.jit_f.before_optimizations.txt") == [
        (3, "jit_f", ["after_optimizations"]),
        (4, "jit_f", ["before_optimizations"]),
    ]


def test_the_same_name_in_two_directories_is_two_modules() -> None:
    assert len(find_modules({"a/module_0000.f.after_codegen.txt": 1, "b/module_0000.f.after_codegen.txt": 1})) == 2


def test_files_about_a_compile_alone_are_no_module() -> None:
    assert find_modules({"module_0000.jit_f.flagfile": 1, "notes.txt": 1, "module_x.txt": 1}) == []


def test_thousands_of_files_take_well_under_a_second() -> None:
    files = {f"module_{i:04}.jit_f.cl_9.{j:04}.p.after_a.before_b.txt": 1 for i in range(50) for j in range(100)}
    files |= {f"module_{i:04}.jit_f.__compute_module_{j}.ir-no-opt.ll": 1 for i in range(50) for j in range(100)}
    start = time.perf_counter()
    assert len(find_modules(files)) == 50
    assert time.perf_counter() - start < 5
