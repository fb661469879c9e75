"""What among the files of a tree is to be read: one bundle, one dump directory, or HLO files."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hlotrace._open import bundle_roots
from hlotrace._sniff import describe, is_chrome_trace, is_trace, looks_binary, looks_like_hlo_text
from hlotrace.bundle import PROFILE, PROGRAMS
from hlotrace.errors import HlotraceError
from hlotrace.parsers.dump_directory import find_modules
from hlotrace.parsers.log_directory import TraceFile, TraceFiles, find_traces, trace_file

if TYPE_CHECKING:
    from hlotrace._open import Tree
    from hlotrace.parsers.dump_directory import ModuleFiles

_LOOSE = (".hlo", ".txt", ".pb", ".hlo_proto")
_REMEDY = "Give a bundle, a directory that --xla_dump_to or a profiler wrote, one HLO file or one trace."
MOST_NAMED = 5


@dataclass(frozen=True)
class Layout:
    """What to read; all paths are relative to the tree's root.

    Attributes:
        root: the bundle's directory with a slash at its end; empty when that is the tree's root, or there is none.
        has_manifest: whether a manifest stands in `root`.
        modules: what XLA's file names say, by directory and number.
        files: HLO files of any name, where no file has such a name.
        traces: the traces of the latest run.
    """

    root: str
    has_manifest: bool
    modules: tuple[ModuleFiles, ...]
    files: tuple[str, ...] = ()
    traces: TraceFiles = field(default_factory=lambda: TraceFiles((), ()))

    @property
    def has_hlo(self) -> bool:
        """Whether there is HLO beside the traces."""
        return self.has_manifest or bool(self.modules or self.files)


def layout(tree: Tree, shown: str) -> Layout:
    """Decide what to read; `shown` is the path in errors.

    Raises:
        HlotraceError: there is neither HLO nor a trace, or several bundles or dump directories lie below.
    """
    roots = bundle_roots(tree.listing)
    if len(roots) > 1:
        raise _ambiguous("bundles", [root.rstrip("/") for root in roots], shown)
    if roots:
        modules = _modules(tree, f"{roots[0]}{PROGRAMS}/")
        return Layout(roots[0], True, modules, (), _traces(tree, f"{roots[0]}{PROFILE}/"))
    if len(tree.listing) == 1 and not tree.is_directory:
        only = _only_trace(tree)
        if only is not None:
            return Layout("", False, (), (), TraceFiles(((only,),), ()))
        return Layout("", False, (), (_only_file(tree, shown),))
    modules = _modules(tree, "")
    directories = sorted({module.directory for module in modules})
    if len(directories) > 1 and not _are_programs(directories, shown):
        raise _ambiguous("dump directories", directories, shown)
    traces = _traces(tree, "")
    if modules:
        return Layout("", False, modules, (), traces)
    files = _loose_files(tree, {trace.run for host in traces.hosts for trace in host} | set(traces.other_runs))
    if not files and not traces.hosts:
        raise HlotraceError("there is no HLO in it", place=shown, remedy=_REMEDY)
    return Layout("", False, (), files, traces)


def _traces(tree: Tree, below: str) -> TraceFiles:
    return find_traces({path: size for path, (size, _) in tree.listing.items() if path.startswith(below)})


def _only_trace(tree: Tree) -> TraceFile | None:
    """The one file there is, where it is a trace by its name or its first bytes."""
    path, (size, _) = next(iter(tree.listing.items()))
    named = trace_file(path, size)
    if named is not None or not size:
        return named
    head = tree.head(path)
    if is_chrome_trace(head, path) and not looks_like_hlo_text(head):
        return TraceFile(path, "", path, "chrome", size)
    return TraceFile(path, "", path, "xplane", size) if looks_binary(head) and is_trace(head, path) else None


def _modules(tree: Tree, below: str) -> tuple[ModuleFiles, ...]:
    return tuple(find_modules({path: size for path, (size, _) in tree.listing.items() if path.startswith(below)}))


def _are_programs(directories: list[str], shown: str) -> bool:
    """Whether they are the folders of one bundle whose manifest is missing or was not opened."""
    parents = {directory.rpartition("/")[0] for directory in directories}
    parent = next(iter(parents)) or shown.rstrip("/")
    return len(parents) == 1 and parent.rpartition("/")[2] == PROGRAMS


def _only_file(tree: Tree, shown: str) -> str:
    """The one file there is, if it is HLO by its first bytes; a proto is known only when it is read."""
    path = next(iter(tree.listing))
    head = tree.head(path) if tree.listing[path][0] else b""
    if looks_like_hlo_text(head) or _may_be_proto(path, head):
        return path
    kind = describe(head, path)
    raise HlotraceError(f"expected HLO, found {kind.what}", place=shown, remedy=kind.remedy)


def _may_be_proto(path: str, head: bytes) -> bool:
    return looks_binary(head) and not describe(head, path).is_certain


def _loose_files(tree: Tree, runs: set[str]) -> tuple[str, ...]:
    """HLO files of any name; none from a profiler's run, where other files are XProf's."""
    candidates = [
        path
        for path, (size, _) in sorted(tree.listing.items())
        if size and path.endswith(_LOOSE) and path.rpartition("/")[0] not in runs
    ]
    found = []
    for path in candidates:
        head = tree.head(path)
        if looks_like_hlo_text(head) or (path.endswith((".pb", ".hlo_proto")) and _may_be_proto(path, head)):
            found.append(path)
    return tuple(found)


def _ambiguous(what: str, names: list[str], shown: str) -> HlotraceError:
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return HlotraceError(
        f"holds {len(names)} {what}",
        place=shown,
        remedy=f"Name one of them: {', '.join(names[:MOST_NAMED])}{more}.",
    )
