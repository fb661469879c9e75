"""The traces among the files of a tree: opened, what they say of themselves checked, their tables and HLO made."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from hlotrace._layout import layout
from hlotrace._modules import Problems
from hlotrace._sniff import HEAD_BYTES, describe, is_trace, looks_damaged_as_text
from hlotrace.errors import ParseError
from hlotrace.parsers.chrome_trace import ChromeEvents
from hlotrace.parsers.xplane import read_space
from hlotrace.tables import PROBLEMS
from hlotrace.trace import from_chrome, from_xplane
from hlotrace.trace.build import SUMMARIES, Traced
from hlotrace.trace.programs import INSTRUCTION_COLUMNS, MODULE_COLUMNS

if TYPE_CHECKING:
    from collections.abc import Callable

    from hlotrace._open import Tree
    from hlotrace.parsers.log_directory import TraceFile, TraceFiles
    from hlotrace.trace.lanes import Trace

_COPY_AGAIN = "Copy it again, as binary."


@dataclass(frozen=True)
class TracedModule:
    """A program's HLO that came with a trace."""

    program_id: int | None
    name: str
    proto: bytes
    file: str
    platform: str | None
    device_kind: str | None


def assemble_traces(
    tree: Tree, shown: str, table: Callable[[str, tuple[str, ...]], pa.Table], *, with_events: bool
) -> dict[str, pa.Table]:
    """The tables that are read from the traces of a tree: the summaries and their problems, or the events alone.

    Args:
        shown: the path in errors.
        table: gives columns of the tables that are read from HLO.
    """
    files, problems = layout(tree, shown).traces, Problems()
    opened = [found for host in files.hosts if (found := _first_readable(tree, host, problems)) is not None]
    modules = table("modules", MODULE_COLUMNS).to_pylist()
    traced = Traced([trace for _, trace in opened], modules, table("instructions", INSTRUCTION_COLUMNS))
    if with_events:
        return {"events": traced.events()}
    made = traced.summaries()
    for file, trace in opened:
        problems.add_all(file.path, trace.problems)
        if trace.platform is None:
            what = "no device planes, and no ops on the CPU: a trace of the host alone"
            if trace.problems:
                what = "no ops in what could be read: of a plane that is cut the names may be missing, which come last"
            problems.add(file.path, "", what, "there are no op times")
    _add_other_runs(files, problems)
    made["problems"] = pa.Table.from_pylist(problems.rows, schema=PROBLEMS.arrow_schema())
    assert set(made) == {*SUMMARIES, "problems"}
    return made


def _add_other_runs(files: TraceFiles, problems: Problems) -> None:
    if files.other_runs:
        run = files.hosts[0][0].run
        count = len(files.other_runs)
        what = "1 other run is in it" if count == 1 else f"{count:,} other runs are in it"
        problems.add("", "", f"{what}: {', '.join(files.other_runs)}", f"only {run} is read; name another to read that")


def _first_readable(tree: Tree, files: tuple[TraceFile, ...], problems: Problems) -> tuple[TraceFile, Trace] | None:
    """The best file of a host that can be read, and its trace; what cannot becomes a problem."""
    for file in files:
        try:
            return file, open_trace(tree, file)
        except ParseError as error:
            problems.add_error(file.path, error, "it is not read")
    return None


def open_trace(tree: Tree, file: TraceFile) -> Trace:
    """The trace in a file.

    Raises:
        ParseError: it is no trace; the error says what it is.
    """
    if file.kind == "xplane":
        return _xplane(tree, file)[0]
    _check(tree, file)
    with tree.fs.open(tree.join(file.path), "rb") as raw:
        events = ChromeEvents(raw, file.path)
        return from_chrome.trace_of(events, file.host, events.problems)


def _xplane(tree: Tree, file: TraceFile) -> tuple[Trace, list[tuple[int | None, str, bytes]]]:
    _check(tree, file)
    data = tree.mapped(file.path)
    is_text = looks_damaged_as_text(data[:HEAD_BYTES])
    try:
        space = read_space(data, place=file.path)
    except ParseError as error:
        raise (_converted(error.place or file.path) if is_text else error) from None
    if is_text and (space.problems or data[:1] == b"\r"):
        raise _converted(file.path)
    return from_xplane.trace_of(space, file.host), from_xplane.modules_in(space)


def _check(tree: Tree, file: TraceFile) -> None:
    """What the first bytes say that is no trace at all."""
    head = tree.head(file.path) if tree.listing[file.path][0] else b""
    kind = describe(head, file.path)
    if not is_trace(head, file.path):
        raise ParseError(f"expected a profiler trace, found {kind.what}", place=file.path, remedy=kind.remedy)


def _converted(place: str) -> ParseError:
    what = "expected a profiler trace, found one damaged by a conversion to text"
    return ParseError(what, place=place, remedy=_COPY_AGAIN)


def traced_modules(tree: Tree, files: TraceFiles, problems: Problems) -> Iterator[TracedModule]:
    """The HLO in the traces and beside them, each program once.

    Raises:
        ParseError: there is a single trace and it cannot be read.
    """
    seen: set[tuple[int | None, str]] = set()
    for host in files.hosts:
        for file in host:
            try:
                found = list(_modules_of(tree, file))
            except ParseError as error:
                if sum(map(len, files.hosts)) == 1:
                    raise
                problems.add_error(file.path, error, "no HLO is read from it")
                continue
            for module in found:
                if (module.program_id, module.name) not in seen:
                    seen.add((module.program_id, module.name))
                    yield module
            break
    for side in files.sides:
        if (side.program_id, side.module) not in seen:
            yield TracedModule(side.program_id, side.module, tree.read(side.path), side.path, None, None)


def _modules_of(tree: Tree, file: TraceFile) -> Iterator[TracedModule]:
    if file.kind == "chrome":
        _check(tree, file)
        with tree.fs.open(tree.join(file.path), "rb") as raw:
            ChromeEvents(raw, file.path).begin()
        return
    trace, modules = _xplane(tree, file)
    for program_id, name, proto in modules:
        yield TracedModule(program_id, name, proto, file.path, trace.platform, trace.device_kind)
