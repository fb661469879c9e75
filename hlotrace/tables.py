"""The public tables: every column's dtype, unit and meaning, declared once.

The loader shapes frames by these declarations, the reference page is made from them, and tests hold parsers
and analyses to them. Nothing heavy is imported here, but for what makes Arrow schemas and pandas frames of them, when it is called.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

DType = Literal["string", "category", "int", "float", "bool", "strings", "ints"]
"""`category` is a string of which there are few; `strings` and `ints` are lists; null means not known, in any of them."""

Unit = Literal["bytes", "ns", "ps", "count", "flop", "cycles", "share"]


@dataclass(frozen=True)
class Column:
    """One column: `references` names the `table.column` that its values are found in."""

    name: str
    dtype: DType
    doc: str
    unit: Unit | None = None
    references: str | None = None


@dataclass(frozen=True)
class Table:
    """One table: what a row is, and its columns in the order people see them."""

    name: str
    row: str
    columns: tuple[Column, ...]

    @property
    def column_names(self) -> list[str]:
        """The names of the columns, in order."""
        return [column.name for column in self.columns]

    def __getitem__(self, name: str) -> Column:
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(name)

    def arrow_schema(self) -> pa.Schema:
        """The pyarrow schema of this table, every field nullable."""
        import pyarrow as pa

        types = {
            "string": pa.string(),
            "category": pa.dictionary(pa.int32(), pa.string()),
            "int": pa.int64(),
            "float": pa.float64(),
            "bool": pa.bool_(),
            "strings": pa.list_(pa.string()),
            "ints": pa.list_(pa.int64()),
        }
        return pa.schema([pa.field(column.name, types[column.dtype]) for column in self.columns])


def _module(doc: str = "the module, unique within the bundle") -> Column:
    return Column("module", "string", doc, references="modules.module")


def _branch() -> Column:
    return Column(
        "branch",
        "string",
        "the branches of conditionals it stands in, outermost first, as `conditional.3#1/conditional.9#0`; null where it stands in none",
    )


LINES = ("source_file", "source_line", "user_file", "user_line")
"""The columns that say which lines a row comes from."""


def _source() -> Sequence[Column]:
    return (
        Column("op_name", "string", "the framework's name for what made it: nested scopes, separated by `/`"),
        Column("source_file", "string", "the source file of the innermost frame, as the compiler recorded it"),
        Column("source_line", "int", "the line in `source_file`, from 1"),
        Column(
            "user_file",
            "string",
            "the file of the innermost frame outside of installed packages and Python's own library; `source_file` where there is none",
        ),
        Column("user_line", "int", "the line in `user_file`, from 1"),
    )


MODULES = Table(
    "modules",
    "one compiled program",
    (
        Column(
            "module",
            "string",
            "its name, unique within the bundle: the HLO module name, and the target and a number where needed",
        ),
        Column("name", "string", "the HLO module name"),
        Column("function", "string", "the function it was compiled from, as the program names it; null for a raw dump"),
        Column("program_id", "int", "the id that traces use for it, where known"),
        Column("platform", "string", "`cpu`, `gpu` or `tpu`"),
        Column("target", "string", "the topology or device it was compiled for, such as `v5e:2x2` or `cpu`"),
        Column("device_kind", "string", "the kind of device as the compiler names it, such as `TPU v5 lite`"),
        Column("num_partitions", "int", "SPMD partitions", "count"),
        Column("num_replicas", "int", "replicas", "count"),
        Column("is_scheduled", "bool", "whether the final stage states a schedule"),
        Column("stages", "strings", "the stages that are present, in the order of the pipeline"),
        Column("final_stage", "string", "the last of them: what runs"),
        Column("instruction_count", "int", "instructions in the final stage, all computations", "count"),
        Column(
            "launches",
            "int",
            "programs the device is asked to start in one execution, after optimisation; of a conditional's branches the one that starts most",
            "count",
        ),
        Column(
            "launches_before",
            "int",
            "the same of the program before optimisation: what op-by-op execution would start",
            "count",
        ),
        Column(
            "flops",
            "int",
            "floating-point operations of one execution, loops times their trip counts, of a conditional's branches the one that takes most; what `launches_without_flops` counts is not in it",
            "flop",
        ),
        Column(
            "launches_without_flops",
            "int",
            "launches whose operations are not known, such as custom calls without a cost estimate; all branches counted",
            "count",
        ),
        Column("argument_bytes", "int", "device memory of the parameters, as the compiler assigned it", "bytes"),
        Column("output_bytes", "int", "device memory of the results, as the compiler assigned it", "bytes"),
        Column("alias_bytes", "int", "bytes that are both parameter and result (donated inputs)", "bytes"),
        Column("temp_bytes", "int", "temporary memory by our reading of the buffer assignment", "bytes"),
        Column("compiler_temp_bytes", "int", "`temp_size_in_bytes` as `memory_analysis()` gave it", "bytes"),
        Column("code_bytes", "int", "the generated code, which occupies HBM too", "bytes"),
        Column("hbm_total_bytes", "int", "all allocations in HBM (host memory on CPU), code not included", "bytes"),
        Column("hbm_needed_bytes", "int", "`hbm_total_bytes` plus `code_bytes`", "bytes"),
        Column("hbm_peak_bytes", "int", "the most bytes of live values at one schedule position in HBM", "bytes"),
        Column(
            "buffers_from",
            "string",
            "where the buffers come from: `compiler`, `incomplete` (its buffer assignment is cut short or does not add up) or `model` (ours: each buffer has a place of its own); null without any",
        ),
        Column(
            "live_ranges_from",
            "string",
            "where the live ranges, and so `hbm_peak_bytes`, come from: `compiler` or `model` (ours); null without any",
        ),
        Column("hbm_capacity_bytes", "int", "usable HBM of one device of the target, null when not known", "bytes"),
        Column(
            "estimated_cycles",
            "int",
            "sum of the compiler's cost-model estimates of the launches, loops times trip counts, of a conditional's branches the costliest",
            "cycles",
        ),
        Column("trace_ns", "int", "time the framework took to trace the function (measured)", "ns"),
        Column("lower_ns", "int", "time the framework took to lower it (measured)", "ns"),
        Column("compile_ns", "int", "time XLA took to compile it (measured)", "ns"),
        Column(
            "error", "string", "why there is no executable, such as a compile that does not fit; null when it compiled"
        ),
        Column("directory", "string", "where its files are, relative to the bundle"),
    ),
)

COMPUTATIONS = Table(
    "computations",
    "a computation at a stage",
    (
        _module(),
        Column("stage", "string", "`before_optimizations`, `after_optimizations`, `after_codegen`, or a pass's name"),
        Column("computation", "string", "its name, without `%`"),
        Column(
            "role", "string", "entry, fusion, while_body, while_condition, branch, reducer, called, async or unused"
        ),
        Column(
            "caller",
            "string",
            "the first instruction that calls it, null for the entry",
            references="instructions.instruction",
        ),
        Column("trip_count", "int", "trips of the loop whose body this is; null when unknown or not a loop", "count"),
        Column(
            "execution_count",
            "int",
            "executions in one run of the module, each branch counted as taken, a reducer as often as what applies it; null when a trip count on the way is unknown",
            "count",
        ),
        Column("instruction_count", "int", "instructions in it", "count"),
    ),
)

INSTRUCTIONS = Table(
    "instructions",
    "an instruction at a stage",
    (
        _module(),
        Column("stage", "string", "`before_optimizations`, `after_optimizations`, `after_codegen`, or a pass's name"),
        Column("computation", "string", "the computation it stands in", references="computations.computation"),
        Column("instruction", "string", "its name, without `%`"),
        Column("opcode", "string", "the opcode as the text has it"),
        Column(
            "category",
            "string",
            "matmul, convolution, reduction, loop fusion, elementwise, data movement, async copy, collective, custom call, host, sort, control, parameter, constant or other; a fusion is as the heaviest thing in it",
        ),
        Column("is_root", "bool", "whether it is its computation's root"),
        Column(
            "is_launch",
            "bool",
            "whether a device is asked to start it: at entry level, in loop bodies, branches and called computations; no parameter, constant, tuple, get-tuple-element, bitcast or second half of an async pair, and no loop, conditional or call, which what is in them stands for",
        ),
        Column("shape", "string", "the result shape with its layout, as text"),
        Column("dtype", "string", "the element type; null for a tuple"),
        Column("dims", "ints", "the dimensions; null for a tuple"),
        Column("layout", "string", "the layout between braces, as text"),
        Column("memory_space", "int", "XLA's number: 0 HBM, 1 VMEM, 5 host, … of an array; null for a tuple"),
        Column("memory_space_name", "string", "what that number means on the platform"),
        Column(
            "logical_bytes",
            "int",
            "result bytes without padding (elements times element size), tuple elements summed",
            "bytes",
        ),
        Column("bytes", "int", "result bytes as allocated, tile padding included, tuple elements summed", "bytes"),
        Column(
            "operands",
            "strings",
            "the names of its operands in order; an element of a tuple as `name#i`",
            references="instructions.instruction",
        ),
        Column("called", "strings", "computations it calls", references="computations.computation"),
        Column("parameter_number", "int", "which parameter of its computation it is; null when it is none"),
        Column("fusion_kind", "string", "kLoop, kInput, kOutput or kCustom"),
        Column("custom_call_target", "string", "the target of a custom call"),
        *_source(),
        Column("source_stack", "strings", "the recorded stack, innermost first, as `file:line function`"),
        Column(
            "flops",
            "int",
            "floating-point operations of one execution, by XLA's HloCostAnalysis conventions; a fusion's are its members', a loop's or call's 0, so launches add up to the module; a custom call's as its cost estimate states them, null without one",
            "flop",
        ),
        Column(
            "product_dtype",
            "string",
            "the element type that its dots and convolutions multiply, a fusion's members included: of two operands the wider, of several products the narrowest, so its peak bounds them all; null where it has none",
        ),
        Column(
            "execution_count",
            "int",
            "executions in one run of the module, each branch of a conditional counted as taken; null when a trip count on the way is unknown",
            "count",
        ),
        _branch(),
        Column(
            "hbm_read_bytes",
            "int",
            "bytes one execution reads from HBM (our model: distinct operands in HBM, slices count what they touch, async operations count at their start); null inside fusions, where the fusion counts",
            "bytes",
        ),
        Column(
            "hbm_write_bytes",
            "int",
            "bytes one execution writes to HBM (our model: results in HBM, an update in place counts what it changes); null inside fusions",
            "bytes",
        ),
        Column(
            "estimated_cycles",
            "int",
            "the compiler's cost-model estimate of one execution; null when it gave none",
            "cycles",
        ),
        Column("bundle_cycles", "int", "cycles of the scheduled VLIW bundles, where dumped", "cycles"),
        Column(
            "schedule_index",
            "int",
            "its position in the module's flattened schedule, the one that live ranges use; null when unscheduled",
        ),
        Column("line", "int", "its line in the dump file, from 1; null when read from a proto"),
        Column(
            "literal",
            "string",
            "what stands between the parentheses when it is not operands: a constant's value, an iota's nothing",
        ),
        Column("attributes", "string", "its attributes as the text has them, without metadata and backend_config"),
        Column("backend_config", "string", "its backend_config as text"),
    ),
)

FUSIONS = Table(
    "fusions",
    "a fusion in the final program",
    (
        _module(),
        Column("fusion", "string", "the fusion instruction", references="instructions.instruction"),
        Column(
            "computation", "string", "the computation that holds its members", references="computations.computation"
        ),
        Column(
            "caller_computation",
            "string",
            "the computation the fusion stands in",
            references="computations.computation",
        ),
        Column("kind", "string", "kLoop, kInput, kOutput or kCustom"),
        Column("category", "string", "the category, after what it does: matmul, loop fusion, reduction, …"),
        Column("root_opcode", "string", "the opcode of its root"),
        Column(
            "member_count",
            "int",
            "instructions fused, parameters, constants, tuples, get-tuple-elements and bitcasts not counted",
            "count",
        ),
        Column("member_opcodes", "strings", "their opcodes with counts, most frequent first, as `add x3`"),
        Column("operand_bytes", "int", "bytes of the operands as allocated", "bytes"),
        Column("output_bytes", "int", "bytes of the results as allocated", "bytes"),
        Column(
            "internal_bytes",
            "int",
            "bytes kept out of memory: written once and read by each user had every member been a kernel (our model)",
            "bytes",
        ),
        Column("launches_saved", "int", "launches less than one a member (our model: members minus one)", "count"),
        Column("flops", "int", "floating-point operations of one execution", "flop"),
        Column(
            "estimated_cycles",
            "int",
            "the compiler's cost-model estimate of one execution; null when it gave none",
            "cycles",
        ),
        Column("execution_count", "int", "executions in one run of the module; null when unknown", "count"),
        Column("op_names", "strings", "the op_names of all members, each once, in order"),
        Column(
            "source_lines",
            "strings",
            "the user's lines (`user_file:user_line`) it comes from, each once: its own (else its root's) first, then its members' by how many of them have each",
        ),
    ),
)

PREDICTIONS = Table(
    "predictions",
    "a launch in the final program, where the chip is known",
    (
        _module(),
        Column("computation", "string", "the computation it stands in", references="computations.computation"),
        Column("instruction", "string", "its name, without `%`", references="instructions.instruction"),
        Column(
            "class",
            "string",
            "matmul fusion, loop fusion, reduce, data movement fusion, bare broadcast, copy or convert, bare slice or pad, gather or scatter, sort, Pallas call, custom call, async copy, collective, host transfer or other: one rule of prediction goes for each",
        ),
        Column(
            "basis",
            "string",
            "what `predicted_ns` was made of: cost model or bundles (the compiler's), floor, link model or kernel estimate (a Pallas call's own, our figures of the chip), or unknown",
        ),
        Column(
            "is_calibrated",
            "bool",
            "whether three or more distinct operations of its class were measured against that basis; null where nothing is predicted",
        ),
        Column("predicted_ns", "int", "predicted time of one execution; null when nothing tells it", "ns"),
        Column("low_ns", "int", "the least of the range, by the measured spread of its class", "ns"),
        Column("high_ns", "int", "the most of the range", "ns"),
        Column(
            "floor_ns",
            "int",
            "the least time one execution can take: the largest of the three floors (our model); null for Pallas calls, which may leave operands untouched",
            "ns",
        ),
        Column(
            "bound_by",
            "string",
            "compute, HBM or VMEM, whichever floor is largest; overhead where starting takes longer; links for a collective",
        ),
        Column(
            "compute_floor_ns",
            "int",
            "FLOPs over the peak of the element type multiplied; null where `floor_ns` is",
            "ns",
        ),
        Column("hbm_floor_ns", "int", "bytes in HBM, read and written, over its bandwidth", "ns"),
        Column("vmem_floor_ns", "int", "bytes read from VMEM, or written if more, over the bandwidth of reading", "ns"),
        Column("estimated_cycles", "int", "the compiler's cost-model estimate of one execution", "cycles"),
        Column("bundle_cycles", "int", "cycles of the scheduled VLIW bundles, where dumped", "cycles"),
        Column("flops", "int", "floating-point operations of one execution; null for Pallas calls", "flop"),
        Column(
            "hbm_bytes",
            "int",
            "bytes of HBM that one execution reads and writes (our model); null for Pallas calls",
            "bytes",
        ),
        Column("execution_count", "int", "executions in one run of the module; null when unknown", "count"),
        _branch(),
    ),
)

BUFFERS = Table(
    "buffers",
    "a value in an allocation",
    (
        _module(),
        Column("memory_space", "int", "XLA's number of the allocation's memory space"),
        Column("memory_space_name", "string", "what that number means on the platform"),
        Column("allocation", "int", "the allocation's index in the buffer assignment"),
        Column("allocation_bytes", "int", "its size", "bytes"),
        Column(
            "category",
            "string",
            "argument, output, temp, constant, preallocated, thread_local or alias (both argument and output)",
        ),
        Column("value", "string", "the value: `instruction{index}`"),
        Column("instruction", "string", "the instruction that defines it", references="instructions.instruction"),
        Column("offset_bytes", "int", "where in the allocation it begins", "bytes"),
        Column("bytes", "int", "its size as assigned", "bytes"),
        Column("logical_bytes", "int", "its size without padding", "bytes"),
        Column("padding_bytes", "int", "`bytes` less `logical_bytes`", "bytes"),
        Column("shape", "string", "its shape with layout"),
        Column("live_from", "int", "the schedule position where it begins to live"),
        Column("live_to", "int", "the last schedule position where it lives"),
        *_source(),
        Column(
            "inherited_from",
            "string",
            "where the defining instruction has no `op_name` and no source of its own (a copy, a loop's state): the instruction that these are of, found by following the value to what produced it; null where they are its own, or nothing is known",
            references="instructions.instruction",
        ),
    ),
)

_LIVE_CATEGORIES = ("argument", "output", "alias", "temp", "constant", "preallocated")

MEMORY_TIMELINE = Table(
    "memory_timeline",
    "a schedule position in a memory space",
    (
        _module(),
        Column("memory_space", "int", "XLA's number of the memory space"),
        Column("schedule_index", "int", "the position in the module's flattened schedule"),
        Column("instruction", "string", "the instruction at that position", references="instructions.instruction"),
        Column("computation", "string", "the computation it stands in", references="computations.computation"),
        Column(
            "live_bytes", "int", "bytes of the values alive there; bytes shared by aliased values count once", "bytes"
        ),
        *(
            Column(f"{category}_bytes", "int", f"of them in allocations of category {category}", "bytes")
            for category in _LIVE_CATEGORIES
        ),
    ),
)

COMPILATIONS = Table(
    "compilations",
    "one compilation that the captured program asked for",
    (
        Column("module", "string", "the module it made; null where it was only counted", references="modules.module"),
        Column("name", "string", "the HLO module name"),
        Column("function", "string", "the function, as the program names it"),
        Column(
            "kind", "string", "program, eager (a primitive run by itself), helper (a library's) or host (on the CPU)"
        ),
        Column("signature", "string", "the arguments' paths, dtypes, shapes and shardings, and static values"),
        Column("defined_file", "string", "the file that defines the function"),
        Column("defined_line", "int", "its line there"),
        Column("count", "int", "how often it was compiled", "count"),
        Column("trace_ns", "int", "time to trace (measured)", "ns"),
        Column("lower_ns", "int", "time to lower (measured)", "ns"),
        Column("compile_ns", "int", "time to compile (measured)", "ns"),
    ),
)

FLAGS = Table(
    "flags",
    "a flag of the compiler as a dump lists it",
    (
        _module(),
        Column(
            "source",
            "string",
            "`flagfile` (all flags), `tpu_comp_env` (what libtpu made of them) or `debug_options` (those that differ from XLA's defaults)",
        ),
        Column("flag", "string", "its name, without dashes"),
        Column("value", "string", "its value as text; a flag without a value is `true`"),
    ),
)

PROBLEMS = Table(
    "problems",
    "something that could not be read or does not add up",
    (
        Column("file", "string", "the file, relative to what was opened"),
        Column("place", "string", "where in it: `line:column`, `byte N`, a module or an instruction"),
        Column("what", "string", "what was found there"),
        Column("consequence", "string", "what is missing or less sure because of it"),
    ),
)

_HOST = Column("host", "string", "the machine that was traced, as the trace names it")
_INSTRUCTION_DOC = "the HLO instruction; null for what is none, such as a copy between host and device"

EVENTS = Table(
    "events",
    "an event of a trace",
    (
        Column("host", "category", _HOST.doc),
        Column("plane", "category", "the plane, such as `/device:TPU:0` or `/host:CPU`"),
        Column("line", "category", "the line in it: a kind of device events, a stream or a thread"),
        Column("event", "category", "its name; the instruction's name where the trace gives the instruction's text"),
        Column("start_ps", "int", "when it began, on the trace's clock", "ps"),
        Column("duration_ps", "int", "how long it took, on the trace's clock", "ps"),
        Column(
            "module",
            "category",
            "the module that it ran, as `modules` names it; as the trace names it where its HLO is not there",
            references="modules.module",
        ),
        Column("program_id", "int", "the program's id in the trace, as a signed 64-bit integer"),
        Column("run_id", "int", "which run of the program it belongs to"),
        Column("step", "int", "the number of the step that it began in", references="steps.step"),
        Column("instruction", "category", _INSTRUCTION_DOC, references="instructions.instruction"),
        Column("hlo_category", "category", "the category that the trace itself gives it"),
    ),
)

OP_TIMES = Table(
    "op_times",
    "an op's time on a device over a trace (measured, by the device's own clock where the trace has it)",
    (
        _HOST,
        Column("device", "string", "the device, such as `TPU:0`, `GPU:1` or `CPU:0`"),
        _module("the module, as `modules` names it; as the trace names it where its HLO is not there"),
        Column("program_id", "int", "the program's id in the trace, as a signed 64-bit integer"),
        Column("instruction", "string", _INSTRUCTION_DOC, references="instructions.instruction"),
        Column("name", "string", "the event's name: the instruction's, or the kernel's that took the most time"),
        Column("hlo_category", "string", "the category that the trace itself gives it"),
        Column(
            "category",
            "string",
            "the instruction's category; of a kernel that is no instruction collective, data movement or other",
        ),
        Column("occurrences", "int", "how many events there are of it", "count"),
        Column("total_ps", "int", "time of all of them, what is inside them included", "ps"),
        Column("self_ps", "int", "time of all of them less the ops inside them, so that times add up", "ps"),
        Column("median_ps", "int", "the median of their durations", "ps"),
        Column(
            "flops", "int", "floating-point operations of one execution: the instruction's, else the trace's", "flop"
        ),
        Column("hbm_bytes", "int", "HBM bytes of one execution: the instruction's, else the trace's", "bytes"),
        *_source(),
    ),
)

STEPS = Table(
    "steps",
    "a step of a traced program (measured)",
    (
        _HOST,
        Column("device", "string", "the device; null for the step as the host marked it"),
        Column("step", "int", "its number"),
        Column("start_ps", "int", "when it began, on the trace's clock", "ps"),
        Column("duration_ps", "int", "from its begin to its end", "ps"),
        Column("busy_ps", "int", "how much of that the device ran ops; null for a host", "ps"),
        Column("inferred", "bool", "whether no step was marked, and runs of the main program stand for steps"),
        Column("basis", "string", "what says so: `Steps line`, `annotation NAME`, or `runs of MODULE`"),
    ),
)

COLLECTIVES = Table(
    "collectives",
    "a collective of a traced program (measured, by the device's own clock where the trace has it)",
    (
        _module("the module, as `modules` names it; as the trace names it where its HLO is not there"),
        Column(
            "instruction",
            "string",
            "the instruction, of an asynchronous pair the start; the kernel where it is no instruction",
            references="instructions.instruction",
        ),
        Column("kind", "string", "all-reduce, all-gather, reduce-scatter, all-to-all, collective-permute, …"),
        Column("form", "string", "sync, start/done, fused, sparsecore or kernel (a stream's, beside other streams)"),
        Column("group_size", "int", "devices in a group", "count"),
        Column("group_count", "int", "groups", "count"),
        Column("bytes", "int", "bytes of its result as allocated", "bytes"),
        Column("execution_count", "int", "executions in the trace, all devices", "count"),
        Column("duration_ps", "int", "time of all executions, from start to done", "ps"),
        Column("median_ps", "int", "the median of one execution", "ps"),
        Column("hidden_ps", "int", "how much of it the same device ran other ops", "ps"),
        Column("exposed_ps", "int", "how much of it the device ran nothing else", "ps"),
        Column("overlapped_with", "strings", "the ops that ran meanwhile, those with the most time first"),
        *_source(),
    ),
)

TRACE_TABLES = ("events", "op_times", "steps", "collectives")
"""Tables that are read from a trace."""

ALL_TABLES: dict[str, Table] = {
    table.name: table
    for table in (
        MODULES,
        COMPUTATIONS,
        INSTRUCTIONS,
        FUSIONS,
        PREDICTIONS,
        BUFFERS,
        MEMORY_TIMELINE,
        COMPILATIONS,
        FLAGS,
        EVENTS,
        OP_TIMES,
        STEPS,
        COLLECTIVES,
        PROBLEMS,
    )
}


def to_frame(table: pa.Table) -> pd.DataFrame:
    """A pandas frame with the declared dtypes."""
    import numpy as np
    import pandas as pd
    import pyarrow as pa

    def dtype(kind: pa.DataType) -> object:
        if pa.types.is_string(kind):
            return pd.StringDtype("pyarrow", na_value=np.nan)
        if pa.types.is_int64(kind):
            return pd.Int64Dtype()
        if pa.types.is_boolean(kind):
            return pd.BooleanDtype()
        return pd.ArrowDtype(kind) if pa.types.is_list(kind) else None

    frame: pd.DataFrame = table.to_pandas(types_mapper=dtype)
    return frame
