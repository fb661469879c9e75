"""All tables of a tree of files: each module read, the manifest's knowledge added, problems collected."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hlotrace._layout import layout
from hlotrace._manifest_tables import compilations_table, program_columns
from hlotrace._memory import Memory, add_memory, modelled, read_memory
from hlotrace._modules import Part, Problems, Stage, make_part, platform_of_name, stage_of_name
from hlotrace._sniff import HEAD_BYTES, describe, looks_binary, looks_like_hlo_text
from hlotrace.bundle import MANIFEST_NAME, PROGRAMS, manifest_from_text
from hlotrace.devices import chip_by_target
from hlotrace.errors import HlotraceError, ParseError
from hlotrace.hlo.guesses import guessed_stage, platform_of
from hlotrace.parsers import hlo_proto, hlo_text
from hlotrace.parsers.flags import FLAG_FILES, read_flags
from hlotrace.parsers.log_directory import program_id_of_name
from hlotrace.parsers.target_arguments import read_target
from hlotrace.tables import ALL_TABLES, TRACE_TABLES

if TYPE_CHECKING:
    from hlotrace._layout import Layout
    from hlotrace._open import Tree
    from hlotrace._traces import TracedModule
    from hlotrace.bundle import Manifest, Program
    from hlotrace.parsers.dump_directory import ModuleFiles


Progress = Callable[[int, int], None]
_PROTO_NAMES = (".pb", ".hlo_proto")


@dataclass(frozen=True)
class Assembled:
    """All tables that are not read from traces, and the manifest's text where there is one.

    Attributes:
        traces: the files that the other tables can be read from.
    """

    tables: dict[str, pa.Table]
    manifest: str | None
    traces: tuple[str, ...] = ()


@dataclass
class _Assembly:
    tree: Tree
    shown: str
    root: str = ""
    problems: Problems = field(default_factory=Problems)
    names: Counter[str] = field(default_factory=Counter)

    def file(self, path: str) -> str:
        """A path as tables and problems name it: relative to what was opened."""
        return path.removeprefix(self.root)

    def placed(self, error: ParseError) -> ParseError:
        """The error with a place that begins with what was opened."""
        place = error.place or ""
        is_itself = self.shown.replace("\\", "/").rpartition("/")[2] == next(iter(self.tree.listing))
        where = self.shown.rpartition("/")[0] if is_itself else self.shown
        return ParseError(error.what, place=f"{where}/{place}" if where else place, remedy=error.remedy)

    def unique(self, name: str) -> str:
        """A name for a module that no other has: the second `jit_f` is `jit_f.2`."""
        self.names[name] += 1
        return name if self.names[name] == 1 else self.unique(f"{name}.{self.names[name]}")


def assemble(tree: Tree, shown: str, progress: Progress | None = None) -> Assembled:
    """Read everything in a tree but its traces, from which only HLO is taken; `shown` is the path in errors.

    Args:
        progress: called after each module with how many are read and how many there are.

    Raises:
        HlotraceError: there is nothing to read, or the only file cannot be read.
    """
    plan = layout(tree, shown)
    assembly = _Assembly(tree, shown, plan.root)
    text, manifest = None, None
    if plan.has_manifest:
        text = tree.read(plan.root + MANIFEST_NAME).decode("utf-8", "replace")
        manifest = manifest_from_text(text, f"{shown}: {MANIFEST_NAME}")
    parts = []
    total = len(plan.modules) + len(plan.files)
    for part in _parts(assembly, plan, manifest):
        parts.append(part)
        if progress is not None:
            progress(len(parts), max(total, len(parts)))
    files = tuple(trace.path for host in plan.traces.hosts for trace in host)
    if not parts and manifest is None and not files:
        raise _nothing_read(assembly)
    return Assembled(_tables(parts, assembly.problems, manifest), text, files)


def _parts(assembly: _Assembly, plan: Layout, manifest: Manifest | None) -> Iterator[Part]:
    programs = {program.module: program for program in manifest.programs} if manifest else {}
    assembly.names.update(programs)
    found = set()
    for module in plan.modules:
        folder = module.directory.rpartition("/")[2]
        program = programs.get(folder) if folder not in found else None
        found.add(folder)
        part = _dumped(assembly, module, program)
        if part is not None:
            yield part
    for file in plan.files:
        yield from _single(assembly, file)
    if not plan.has_hlo:
        yield from _of_traces(assembly, plan)
    for name, program in programs.items():
        if name not in found:
            if program.failure is None:
                folder = f"{PROGRAMS}/{name}"
                assembly.problems.add(
                    folder, "", "the folder is not there", "of this program only the manifest is known"
                )
            yield Part({}, {"stages": [], **program_columns(program)})


def _dumped(assembly: _Assembly, files: ModuleFiles, program: Program | None) -> Part | None:
    """A module of a dump directory; None where no stage of it could be read."""
    stages = [stage for name in files.stages if (stage := _stage(assembly, files, name)) is not None]
    row = _known(assembly, files, program)
    if not stages:
        return Part({}, {"stages": [], **row}) if program else None
    if row["platform"] is None:
        row["platform"] = platform_of(stages[-1].hlo)
    memory = read_memory(assembly.tree, files, stages, assembly.problems)
    part = make_part(stages, row, memory.ranges.schedule if memory.ranges else None, assembly.problems)
    add_memory(part, stages[-1].hlo, memory)
    part.tables["flags"] = [_flags(assembly, files, row["module"])]
    return part


def _flags(assembly: _Assembly, files: ModuleFiles, module: str) -> pa.Table:
    rows = []
    for source in FLAG_FILES:
        if (path := files.compile.get(source)) is None:
            continue
        found, problems = read_flags(assembly.tree.read(path).decode("utf-8", "replace"))
        rows += [{"module": module, "source": source, "flag": flag, "value": value} for flag, value in found]
        assembly.problems.add_all(assembly.file(path), problems)
    return pa.Table.from_pylist(rows, schema=ALL_TABLES["flags"].arrow_schema())


def _known(assembly: _Assembly, files: ModuleFiles, program: Program | None) -> dict[str, Any]:
    directory = {"directory": assembly.file(files.directory) or "."}
    if program is not None:
        return {**program_columns(program), **directory}
    platform = files.platform or ("tpu" if files.changelist or "tpu_comp_env" in files.compile else None)
    target = _target(assembly, files)
    chip = chip_by_target(target)
    return {
        "module": assembly.unique(files.name),
        "name": files.name,
        "platform": platform,
        "target": target,
        "device_kind": chip.device_kinds[0] if chip else None,
        **directory,
    }


def _target(assembly: _Assembly, files: ModuleFiles) -> str | None:
    path = files.compile.get("target_arguments")
    return read_target(assembly.tree.read(path).decode("utf-8", "replace")) if path else None


def _stage(assembly: _Assembly, files: ModuleFiles, name: str) -> Stage | None:
    """One stage of a dumped module: from its text, else from its proto; what cannot be read becomes a problem."""
    for path in filter(None, (files.texts.get(name), files.protos.get(name))):
        try:
            for stage in _read(assembly, path, name):
                return stage
            error = ParseError("there is no module in it", place=path)
        except ParseError as caught:
            error = caught
        assembly.problems.add_error(assembly.file(path), error, f"the stage {name} is not read from it")
    return None


def _read(assembly: _Assembly, path: str, name: str | None) -> Iterator[Stage]:
    """The modules of one file, text or proto, told apart by its first bytes.

    Raises:
        ParseError: it is neither.
    """
    data = assembly.tree.read(path)
    file = assembly.file(path)
    if not data:
        raise ParseError("expected HLO, found an empty file (0 bytes)", place=file)
    if looks_like_hlo_text(data[:HEAD_BYTES]):
        for hlo in hlo_text.read_modules(data, place=file):
            yield Stage(name or guessed_stage(hlo), file, hlo)
        return
    kind = describe(data[:HEAD_BYTES], path)
    if not looks_binary(data[:HEAD_BYTES]) or kind.is_certain:
        raise ParseError(f"expected HLO, found {kind.what}", place=file, remedy=kind.remedy)
    try:
        hlo, assignment = hlo_proto.read_module(data, place=file)
    except ParseError:
        if not path.endswith(_PROTO_NAMES):
            raise ParseError(f"expected HLO, found {kind.what}", place=file, remedy=kind.remedy) from None
        raise
    yield Stage(name or guessed_stage(hlo), file, hlo, assignment)


def _single(assembly: _Assembly, path: str) -> Iterator[Part]:
    """The modules of a file of any name; of the only file there is, errors are raised."""
    stage_name = stage_of_name(path)
    try:
        for stage in _read(assembly, path, stage_name):
            row = {
                "module": assembly.unique(stage.hlo.name),
                "program_id": program_id_of_name(path),
                "platform": platform_of_name(path) or platform_of(stage.hlo),
                "target": None,
                "device_kind": None,
                "directory": assembly.file(path).rpartition("/")[0] or ".",
            }
            yield _whole(assembly, stage, row)
    except ParseError as error:
        if len(assembly.tree.listing) == 1 and not assembly.tree.is_directory and not assembly.names:
            raise assembly.placed(error) from None
        assembly.problems.add_error(assembly.file(path), error, "what follows in it is not read")


def _of_traces(assembly: _Assembly, plan: Layout) -> Iterator[Part]:
    """The modules that came with traces; of a lone trace, errors are raised."""
    from hlotrace._traces import traced_modules

    try:
        for module in traced_modules(assembly.tree, plan.traces, assembly.problems):
            part = _traced(assembly, module)
            if part is not None:
                yield part
    except ParseError as error:
        raise (error if assembly.tree.is_directory else assembly.placed(error)) from None


def _traced(assembly: _Assembly, module: TracedModule) -> Part | None:
    file = assembly.file(module.file)
    try:
        hlo, assignment = hlo_proto.read_module(module.proto, place=file)
    except ParseError as error:
        assembly.problems.add_error(file, error, f"the HLO of {module.name} is not read")
        return None
    row = {
        "module": assembly.unique(hlo.name),
        "program_id": module.program_id,
        "platform": module.platform or platform_of(hlo),
        "target": None,
        "device_kind": module.device_kind,
        "directory": file.rpartition("/")[0] or ".",
    }
    return _whole(assembly, Stage(guessed_stage(hlo), file, hlo, assignment), row)


def _whole(assembly: _Assembly, stage: Stage, row: dict[str, Any]) -> Part:
    """A module of which one stage is there."""
    memory = modelled(stage, Memory(stage.assignment, None), assembly.problems)
    part = make_part([stage], row, None, assembly.problems)
    add_memory(part, stage.hlo, memory)
    return part


def _nothing_read(assembly: _Assembly) -> HlotraceError:
    rows = assembly.problems.rows
    first = f" {rows[0]['file']}: {rows[0]['what']}." if rows else ""
    return HlotraceError("no HLO in it could be read", place=assembly.shown, remedy=first.strip())


def _tables(parts: list[Part], problems: Problems, manifest: Manifest | None) -> dict[str, pa.Table]:
    tables = {}
    for name, table in ALL_TABLES.items():
        if name in TRACE_TABLES:
            continue
        schema = table.arrow_schema()
        made = [piece for part in parts for piece in part.tables.get(name, ())]
        tables[name] = pa.concat_tables(made).combine_chunks() if made else schema.empty_table()
    rows = sorted((part.row for part in parts), key=lambda row: str(row["module"]))
    tables["modules"] = pa.Table.from_pylist(rows, schema=ALL_TABLES["modules"].arrow_schema())
    tables["problems"] = pa.Table.from_pylist(problems.rows, schema=ALL_TABLES["problems"].arrow_schema())
    tables["compilations"] = compilations_table(manifest)
    return tables
