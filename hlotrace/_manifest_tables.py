"""What the manifest knows, as rows: the `compilations` table, and a program's columns of `modules`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hlotrace.bundle import PROGRAMS
from hlotrace.tables import COMPILATIONS

if TYPE_CHECKING:
    import pyarrow as pa

    from hlotrace.bundle import Argument, Manifest, Program


def compilations_table(manifest: Manifest | None) -> pa.Table:
    """One row a program, then one for each name that was only counted; empty without a manifest."""
    import pyarrow as pa

    rows = [_program_row(program) for program in manifest.programs] if manifest else []
    for other in manifest.other_compiles if manifest else ():
        file, line = split_place(other.defined_at)
        rows.append(
            {
                "name": other.name,
                "function": other.name,
                "kind": other.kind,
                "defined_file": file,
                "defined_line": line,
                "count": other.count,
                "compile_ns": other.compile_ns,
            }
        )
    return pa.Table.from_pylist(rows, schema=COMPILATIONS.arrow_schema())


def _program_row(program: Program) -> dict[str, Any]:
    file, line = split_place(program.defined_at)
    return {
        "module": program.module,
        "name": program.name,
        "function": program.function,
        "kind": "program",
        "signature": signature(program),
        "defined_file": file,
        "defined_line": line,
        "count": 1,
        "trace_ns": program.trace_ns,
        "lower_ns": program.lower_ns,
        "compile_ns": program.compile_ns,
    }


def signature(program: Program) -> str:
    """The arguments as people write shapes: `x: bfloat16[16,128], static n=3`."""
    static = [f"static {name}={value}" for name, value in program.static_arguments.items()]
    return ", ".join([*map(_argument, program.arguments), *static])


def _argument(argument: Argument) -> str:
    dims = ",".join(map(str, argument.shape))
    marks = [argument.sharding or "", "donated" if argument.donated else ""]
    return " ".join([f"{argument.path}: {argument.dtype}[{dims}]", *filter(None, marks)])


def split_place(place: str | None) -> tuple[str | None, int | None]:
    """`model.py:12` as a file and a line."""
    file, _, line = (place or "").rpartition(":")
    return (file, int(line)) if file and line.isdigit() else (place or None, None)


def program_columns(program: Program) -> dict[str, Any]:
    """What the manifest says of one module, by the columns of `modules`."""
    memory = program.memory_analysis or {}
    return {
        "module": program.module,
        "name": program.name,
        "function": program.function,
        "platform": program.platform,
        "target": program.target,
        "device_kind": program.device_kind,
        "compiler_temp_bytes": memory.get("temp_size_in_bytes"),
        "code_bytes": memory.get("generated_code_size_in_bytes"),
        "trace_ns": program.trace_ns,
        "lower_ns": program.lower_ns,
        "compile_ns": program.compile_ns,
        "error": program.failure.message if program.failure else None,
        "directory": f"{PROGRAMS}/{program.module}",
    }
