"""Small tables by hand, shaped as the declarations say: hostile names, gaps and failures that no compiler writes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from hlotrace.bundle import Failure, Manifest, Program
from hlotrace.tables import ALL_TABLES, to_frame

MIB = 1 << 20
Row = dict[str, Any]


class SyntheticTables(Mapping[str, pd.DataFrame]):
    """Declared tables made of rows; columns that a row leaves out are null."""

    def __init__(self, rows: dict[str, list[Row]], manifest: Manifest | None = None, path: str = "bundle") -> None:
        self.path = path
        self.manifest = manifest
        self.traces = ("host.xplane.pb",) if rows.get("op_times") or rows.get("steps") else ()
        self._arrow = {
            name: pa.Table.from_pylist(rows.get(name, []), schema=table.arrow_schema())
            for name, table in ALL_TABLES.items()
        }

    def arrow(self, name: str, columns: Sequence[str] | None = None) -> pa.Table:
        table = self._arrow[name]
        return table if columns is None else table.select(list(dict.fromkeys(columns)))

    def __getitem__(self, name: str) -> pd.DataFrame:
        return to_frame(self._arrow[name])

    def __iter__(self) -> Iterator[str]:
        return iter(ALL_TABLES)

    def __len__(self) -> int:
        return len(ALL_TABLES)

    def select(self, module: str) -> SyntheticTables:
        chosen = SyntheticTables({}, self.manifest, self.path)
        chosen.traces = self.traces
        chosen._arrow = {
            name: table.filter(pc.equal(table["module"], module)) if "module" in table.column_names else table
            for name, table in self._arrow.items()
        }
        return chosen


def module_row(module: str = "jit_layer", **values: Any) -> Row:
    return {
        "module": module,
        "name": "jit_layer",
        "platform": "tpu",
        "target": "v5e:2x2",
        "device_kind": "TPU v5 lite",
        "num_partitions": 1,
        "num_replicas": 1,
        "is_scheduled": True,
        "stages": ["before_optimizations", "after_optimizations", "after_codegen"],
        "final_stage": "after_codegen",
        "instruction_count": 9,
        "launches": 3,
        "launches_before": 4,
        "flops": 2_000_000_000,
        "argument_bytes": 24 * MIB,
        "output_bytes": 8 * MIB,
        "alias_bytes": 0,
        "temp_bytes": 40 * MIB,
        "compiler_temp_bytes": 39 * MIB,
        "code_bytes": MIB,
        "hbm_total_bytes": 72 * MIB,
        "hbm_needed_bytes": 73 * MIB,
        "hbm_peak_bytes": 64 * MIB,
        "hbm_capacity_bytes": 16 << 30,
        "buffers_from": "compiler",
        "live_ranges_from": "compiler",
        "estimated_cycles": 1_500_000,
        "compile_ns": 2_500_000_000,
        **values,
    }


def instruction_row(stage: str, computation: str, instruction: str, opcode: str, **values: Any) -> Row:
    launched = opcode in ("fusion", "custom-call", "copy", "dot", "add", "multiply") and not computation.startswith("f")
    return {
        "module": "jit_layer",
        "stage": stage,
        "computation": computation,
        "instruction": instruction,
        "opcode": opcode,
        "category": {"dot": "matmul", "add": "elementwise", "multiply": "elementwise"}.get(opcode, "control"),
        "is_root": False,
        "is_launch": launched,
        "shape": "f32[1024,1024]{1,0:T(8,128)}",
        "dtype": "f32",
        "dims": [1024, 1024],
        "layout": "1,0:T(8,128)",
        "memory_space": 0,
        "memory_space_name": "HBM",
        "bytes": 4 * MIB,
        "logical_bytes": 4 * MIB,
        "operands": [],
        "called": [],
        "op_name": f"jit(layer)/mlp/{opcode}",
        "source_file": "/home/planted/model/layer.py",
        "source_line": 12,
        "user_file": "/home/planted/model/layer.py",
        "user_line": values.get("source_line", 12),
        "source_stack": [
            f"/home/planted/model/layer.py:{values.get('source_line', 12)} layer",
            "/home/planted/train.py:39 step",
        ],
        "flops": 1_000_000_000 if opcode == "dot" else 1024,
        "execution_count": 1,
        "hbm_read_bytes": 8 * MIB,
        "hbm_write_bytes": 4 * MIB,
        **values,
    }


def _instructions() -> list[Row]:
    before, after = "before_optimizations", "after_codegen"
    return [
        instruction_row(before, "main", "x", "parameter", parameter_number=0, is_launch=False),
        instruction_row(before, "main", "dot.1", "dot", operands=["x", "x"]),
        instruction_row(before, "main", "add.1", "add", operands=["dot.1", "x"]),
        instruction_row(before, "main", "multiply.1", "multiply", operands=["add.1", "x"]),
        instruction_row(before, "main", "dot.2", "dot", operands=["multiply.1", "x"], is_root=True),
        instruction_row(after, "main", "x", "parameter", parameter_number=0, is_launch=False),
        instruction_row(after, "f1", "param_0", "parameter", parameter_number=0, is_launch=False),
        instruction_row(after, "f1", "dot.1", "dot", operands=["param_0", "param_0"]),
        instruction_row(after, "f1", "bitcast.1", "bitcast", operands=["dot.1"]),
        instruction_row(after, "f1", "add.1", "add", operands=["bitcast.1", "param_0"], source_line=13, is_root=True),
        instruction_row(
            after, "main", "fusion.1", "fusion", operands=["x"], called=["f1"], category="matmul", flops=1_000_001_024,
            estimated_cycles=1_200_000, schedule_index=1, fusion_kind="kOutput",
        ),
        instruction_row(
            after, "main", "multiply.1", "multiply", operands=["fusion.1", "x"], estimated_cycles=300_000,
            schedule_index=2,
        ),
        instruction_row(
            after, "main", "custom-call.1", "custom-call", operands=["multiply.1"], schedule_index=3, is_root=True,
            category="custom call", flops=None,
        ),
    ]  # fmt: skip


def _computations() -> list[Row]:
    def row(stage: str, computation: str, role: str) -> Row:
        return {"module": "jit_layer", "stage": stage, "computation": computation, "role": role, "execution_count": 1}

    return [
        row("before_optimizations", "main", "entry"),
        row("after_codegen", "main", "entry"),
        row("after_codegen", "f1", "fusion"),
    ]


def _fusions() -> list[Row]:
    return [
        {
            "module": "jit_layer",
            "fusion": "fusion.1",
            "computation": "f1",
            "caller_computation": "main",
            "kind": "kOutput",
            "category": "matmul",
            "root_opcode": "add",
            "member_count": 2,
            "member_opcodes": ["add", "dot"],
            "operand_bytes": 4 * MIB,
            "output_bytes": 4 * MIB,
            "internal_bytes": 8 * MIB,
            "launches_saved": 1,
            "flops": 1_000_001_024,
            "estimated_cycles": 1_200_000,
            "execution_count": 1,
            "op_names": ["jit(layer)/mlp/dot", "jit(layer)/mlp/add"],
            "source_lines": ["/home/planted/model/layer.py:12", "/home/planted/model/layer.py:13"],
        }
    ]


def buffer_row(value: str, category: str, size: int, live: tuple[int, int], **values: Any) -> Row:
    return {
        "module": "jit_layer",
        "memory_space": 0,
        "memory_space_name": "HBM",
        "allocation": 0,
        "allocation_bytes": size,
        "category": category,
        "value": f"{value}{{}}",
        "instruction": value,
        "offset_bytes": 0,
        "bytes": size,
        "logical_bytes": size,
        "padding_bytes": 0,
        "shape": "f32[1024,1024]{1,0:T(8,128)}",
        "live_from": live[0],
        "live_to": live[1],
        "source_file": "/home/planted/model/layer.py",
        "source_line": 12,
        "user_file": "/home/planted/model/layer.py",
        "user_line": 12,
        **values,
    }


def _buffers() -> list[Row]:
    shared = {"allocation": 1, "allocation_bytes": 40 * MIB}
    return [
        buffer_row("x", "argument", 24 * MIB, (0, 4)),
        buffer_row("fusion.1", "temp", 32 * MIB, (1, 2), **shared, padding_bytes=8 * MIB, logical_bytes=24 * MIB),
        buffer_row("bitcast.9", "temp", 16 * MIB, (1, 2), **shared, offset_bytes=8 * MIB),
        buffer_row("multiply.1", "temp", 8 * MIB, (2, 3), **shared, offset_bytes=32 * MIB),
        buffer_row("custom-call.1", "output", 8 * MIB, (3, 4), allocation=2),
        buffer_row("copy.1", "temp", 2 * MIB, (1, 1), allocation=3, memory_space=1, memory_space_name="VMEM"),
    ]


def _timeline() -> list[Row]:
    def row(index: int, instruction: str, space: int, **live: int) -> Row:
        named = {f"{category}_bytes": size for category, size in live.items()}
        return {
            "module": "jit_layer",
            "memory_space": space,
            "schedule_index": index,
            "instruction": instruction,
            "computation": "main",
            "live_bytes": sum(live.values()),
            **named,
        }

    return [
        row(0, "x", 0, argument=24 * MIB),
        row(1, "fusion.1", 0, argument=24 * MIB, temp=32 * MIB),
        row(2, "multiply.1", 0, argument=24 * MIB, temp=40 * MIB),
        row(3, "custom-call.1", 0, argument=24 * MIB, temp=8 * MIB, output=8 * MIB),
        row(4, "", 0, argument=24 * MIB, output=8 * MIB),
        row(1, "fusion.1", 1, temp=2 * MIB),
    ]


def layer_rows() -> dict[str, list[Row]]:
    """One small layer for v5e: a fusion, a launch outside of any, a custom call without an estimate."""
    return {
        "modules": [module_row()],
        "computations": _computations(),
        "instructions": _instructions(),
        "fusions": _fusions(),
        "predictions": _predictions(),
        "buffers": _buffers(),
        "memory_timeline": _timeline(),
    }


def prediction_row(instruction: str, kind: str, **values: Any) -> Row:
    return {
        "module": "jit_layer",
        "computation": "main",
        "instruction": instruction,
        "class": kind,
        "bound_by": "HBM",
        "compute_floor_ns": 1,
        "hbm_floor_ns": 15_364,
        "vmem_floor_ns": 0,
        "floor_ns": 15_364,
        "flops": 1024,
        "hbm_bytes": 12 * MIB,
        "execution_count": 1,
        **values,
    }


def _predictions() -> list[Row]:
    return [
        prediction_row(
            "fusion.1", "matmul fusion", basis="cost model", is_calibrated=True, predicted_ns=800_000, low_ns=600_000,
            high_ns=900_000, compute_floor_ns=5_076, estimated_cycles=1_200_000, flops=1_000_001_024,
        ),
        prediction_row(
            "multiply.1", "loop fusion", basis="floor", is_calibrated=False, predicted_ns=20_000, low_ns=15_364,
            high_ns=60_000, estimated_cycles=300_000,
        ),
        prediction_row("custom-call.1", "Pallas call", basis="unknown", floor_ns=None, bound_by=None, flops=None),
    ]  # fmt: skip


HOSTILE = "</title><script>alert('x')</script><img src=https://evil.example/x onerror=alert(1)>|`\"'&"


def hostile_rows() -> dict[str, list[Row]]:
    """The layer with every text replaced by markup that wants out of its cell, in tables that hold together."""
    rows = layer_rows()
    named = {"instruction", "fusion", "computation", "caller_computation", "value", "module"}
    for name, items in rows.items():
        for item in items:
            for key, value in item.items():
                if isinstance(value, str) and key not in ("stage", "final_stage", "platform", "device_kind", "role"):
                    known = key in named or (name == "instructions" and key in ("opcode", "category"))
                    item[key] = (
                        f"{value}{HOSTILE}"
                        if known or key in ("category", "op_name", "source_file", "user_file")
                        else HOSTILE
                    )
                elif key == "source_stack":
                    item[key] = [text.replace(".py:", f".py{HOSTILE}:") for text in value]
                elif isinstance(value, list) and key in ("operands", "called", "source_lines", "member_opcodes"):
                    item[key] = [f"{text}{HOSTILE}" for text in value]
    for row in rows["buffers"]:
        row["category"] = row["category"].removesuffix(HOSTILE)
    rows["problems"] = [{"file": HOSTILE, "place": HOSTILE, "what": HOSTILE, "consequence": HOSTILE}]
    return rows


def cpu_rows() -> dict[str, list[Row]]:
    """The layer as a CPU's compiler leaves it: no cycles, no capacity."""
    rows = layer_rows()
    rows["modules"] = [
        module_row(
            platform="cpu",
            target="cpu",
            device_kind="cpu",
            estimated_cycles=None,
            hbm_capacity_bytes=None,
            code_bytes=None,
        )
    ]
    del rows["predictions"]
    for table in ("instructions", "fusions"):
        rows[table] = [{**row, "estimated_cycles": None} for row in rows[table]]
    return rows


def unscheduled_rows() -> dict[str, list[Row]]:
    """The program before optimisation alone, as one HLO file gives it."""
    stage = "before_optimizations"
    known = ("module", "name", "is_scheduled", "stages", "final_stage", "instruction_count")
    module = module_row(is_scheduled=False, stages=[stage], final_stage=stage, instruction_count=5)
    return {
        "modules": [{name: module[name] for name in known}],
        "computations": [row for row in _computations() if row["stage"] == stage],
        "instructions": [row for row in _instructions() if row["stage"] == stage],
    }


def many_rows(small: int = 7) -> dict[str, list[Row]]:
    """The layer among eager primitives, and one more program of the same name for the CPU."""
    rows = layer_rows()
    eager = [
        module_row(f"jit_add_{number}", name="jit_add", instruction_count=3, hbm_needed_bytes=None)
        for number in range(small)
    ]
    cpu = module_row("jit_layer.cpu", platform="cpu", target="cpu", device_kind="cpu", instruction_count=30)
    rows["modules"] = [*eager, cpu, module_row(instruction_count=20)]
    rows["compilations"] = [{"name": "jit_convert", "kind": "eager", "count": 4}]
    return rows


def op_time_row(instruction: str, category: str, self_ps: int, **values: Any) -> Row:
    return {
        "host": "vm",
        "device": "TPU:0",
        "module": "jit_layer",
        "program_id": 7,
        "instruction": instruction,
        "name": instruction,
        "category": category,
        "occurrences": 3,
        "total_ps": self_ps,
        "self_ps": self_ps,
        "median_ps": self_ps // 3,
        "op_name": "jit(layer)/mlp/dot_general",
        "source_file": "/home/planted/model/layer.py",
        "source_line": 20,
        **values,
    }


def traced_rows() -> dict[str, list[Row]]:
    """The layer with a trace of three inferred steps on two devices, and a kernel that is no instruction."""
    rows = layer_rows()
    rows["op_times"] = [
        op_time_row("fusion.12", "matmul", 6_000_000_000),
        op_time_row("fusion.12", "matmul", 6_300_000_000, device="TPU:1"),
        op_time_row("all-reduce.3", "collective", 900_000_000, op_name=None, source_file=None, source_line=None),
        {"host": "vm", "device": "TPU:0", "name": "MemcpyD2H", "category": "data movement", "occurrences": 1}
        | {"total_ps": 4000, "self_ps": 4000, "median_ps": 4000},
    ]
    rows["steps"] = [
        {"host": "vm", "device": f"TPU:{device}", "step": step, "start_ps": 3_000_000_000 * step}
        | {"duration_ps": 2_500_000_000 + device * step * 100_000_000, "busy_ps": 2_400_000_000}
        | {"inferred": True, "basis": "runs of jit_layer"}
        for device in range(2)
        for step in range(3)
    ]
    rows["collectives"] = [
        {"module": "jit_layer", "instruction": "all-reduce.3", "kind": "all-reduce", "form": "start/done"}
        | {"group_size": 2, "group_count": 1, "bytes": 3 * MIB, "execution_count": 6, "duration_ps": 900_000_000}
        | {"median_ps": 150_000_000, "hidden_ps": 600_000_000, "exposed_ps": 300_000_000}
        | {"overlapped_with": ["fusion.12"]}
    ]
    return rows


def manifest(failure: Failure | None = None, **values: Any) -> Manifest:
    """The manifest of a capture of the layer."""
    program = Program(
        module="jit_layer",
        name="jit_layer",
        function="layer",
        defined_at="/home/planted/model/layer.py:10",
        target="v5e:2x2",
        platform="tpu",
        device_kind="TPU v5 lite",
        device_count=1,
        compile_ns=2_500_000_000,
        failure=failure,
    )
    return Manifest(
        **{
            "created": "2026-11-02T10:00:00+00:00",
            "status": "complete",
            "argv": ["/home/planted/model/layer.py", "--steps", "2"],
            "versions": {"hlotrace": "0.1.0", "jax": "0.10.2", "libtpu": "0.0.42.1"},
            "environment": {},
            "targets": [],
            "programs": [program],
            **values,
        }
    )
