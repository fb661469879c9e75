"""Which files of an XLA dump belong to which module, by their names alone.

XLA (`--xla_dump_to`) writes `module_NNNN.<name>[.cl_<n>].<what>`, and for a snapshot between two passes
`module_NNNN.<name>[.cl_<n>].<sequence>.<pipeline>.after_<pass>.before_<pass>.<ending>`. `<what>` is a stage with an
ending, a side file of the assigned module, or a file about the compile. Backends other than TPU put their name before a
stage: `cpu_after_optimizations`, `sm_9.0_gpu_after_optimizations`. The module's name may hold dots and dashes, so a
file name is read from both ends. NNNN counts the process's compiles: it orders modules but does not identify one, and a
module's file before optimisation may carry another number than those after it.
Source of the names: xla/service/dump.cc, and dumps of libtpu 0.0.42 and 0.0.50.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath

STAGES = ("before_optimizations", "after_optimizations", "after_codegen")
"""The stages a dump may hold, in the order of the pipeline; pass snapshots stand between the first two."""

SIDE_FILES = ("buffer-assignment", "buffer-assignment-values", "live-range", "memory-usage-report")
COMPILE_FILES = (
    "flagfile",
    "debug_options",
    "target_arguments",
    "tpu_comp_env",
    "hlo_module_config",
    "execution_options",
    "basic_compiler_metadata",
    "transfer_stats",
)

_HEAD = r"module_(?P<number>\d+)\.(?P<name>.+?)(?:\.cl_(?P<cl>\d+))?"
_PLATFORM = r"(?:(?:sm_\d+\.\d+\w*?|gfx\w+?|sycl\w*?)_)?(?:(?P<platform>cpu|gpu|tpu|interpreter)_)?"
_STAGE = re.compile(
    rf"{_HEAD}\.{_PLATFORM}(?P<stage>{'|'.join(STAGES)})(?:-(?P<side>{'|'.join(SIDE_FILES)}))?\.(?P<ending>txt|hlo|hlo\.pb|pb)"
)
_PASS = re.compile(
    rf"{_HEAD}\.(?P<sequence>\d{{4,}})\.(?P<pipeline>.+)\.after_(?P<after>.+?)\.before_(?P<before>.+)\.(?P<ending>txt|hlo|hlo\.pb)"
)
_COMPILE = re.compile(rf"{_HEAD}\.(?P<what>{'|'.join(COMPILE_FILES)})(?:\.txt)?")
_SNAPSHOT = re.compile(r"\.\d{4,}\..+\.after_.+\.before_")


@dataclass(frozen=True)
class PassSnapshot:
    """The module between two passes: `sequence` counts the snapshots of one compile."""

    sequence: int
    pipeline: str
    pass_after: str
    pass_before: str
    path: str


@dataclass
class ModuleFiles:
    """The files of one module in one directory; all paths relative to what was searched.

    Attributes:
        number: the process's count of compiles, of the files after optimisation where there are any.
        directory: where they stand.
        platform: as the file names say it: `cpu`, `gpu`, or None (TPU dumps and files before optimisation say nothing).
        texts, protos: stage → path.
        side: one of SIDE_FILES → path of its text.
        compile: one of COMPILE_FILES → path.
        size: bytes of the stages' texts, or protos where there is no text.
    """

    number: int
    name: str
    directory: str
    platform: str | None = None
    changelist: str | None = None
    texts: dict[str, str] = field(default_factory=dict)
    protos: dict[str, str] = field(default_factory=dict)
    side: dict[str, str] = field(default_factory=dict)
    compile: dict[str, str] = field(default_factory=dict)
    passes: list[PassSnapshot] = field(default_factory=list)
    size: int = 0

    @property
    def stages(self) -> list[str]:
        """The stages that are present, in the order of the pipeline."""
        return [stage for stage in STAGES if stage in self.texts or stage in self.protos]

    def path_of(self, stage: str) -> str:
        """The file to read for a stage: the text, or the proto where there is none."""
        return self.texts.get(stage) or self.protos[stage]


def find_modules(files: Mapping[str, int]) -> list[ModuleFiles]:
    """The modules of a dump, ordered by directory and number.

    Args:
        files: relative POSIX path → size in bytes, of everything below the dump's directory.

    Only modules with at least one stage or snapshot are given: files about a compile alone say nothing of a program.
    """
    groups: dict[tuple[str, int, str, str | None], ModuleFiles] = {}
    for path, size in files.items():
        _place(path, size, groups)
    modules = [module for module in groups.values() if module.stages or module.passes]
    for module in modules:
        module.passes.sort(key=lambda snapshot: snapshot.sequence)
    return sorted(_paired(modules), key=lambda module: (module.directory, module.number))


def _place(path: str, size: int, groups: dict[tuple[str, int, str, str | None], ModuleFiles]) -> None:
    """Put one file where it belongs; a file whose name says nothing we know is left out."""
    where = PurePosixPath(path)
    if not where.name.startswith("module_"):
        return
    snapshot = _SNAPSHOT.search(where.name)
    match = (_PASS if snapshot else _STAGE).fullmatch(where.name) or _COMPILE.fullmatch(where.name)
    if match is None:
        return
    directory = "" if str(where.parent) == "." else str(where.parent)
    key = (directory, int(match["number"]), match["name"], match["cl"])
    module = groups.setdefault(key, ModuleFiles(key[1], key[2], directory, changelist=key[3]))
    if match.re is _PASS:
        _add_snapshot(module, match, path)
    elif match.re is _STAGE:
        _add_stage(module, match, path, size)
    else:
        module.compile[match["what"]] = path


def _add_snapshot(module: ModuleFiles, match: re.Match[str], path: str) -> None:
    """Keep the text of a snapshot, or its proto where no text came before."""
    sequence = int(match["sequence"])
    twins = [snapshot for snapshot in module.passes if snapshot.sequence == sequence]
    if match["ending"] == "hlo.pb" and twins:
        return
    for twin in twins:
        if twin.path.endswith(".hlo.pb"):
            module.passes.remove(twin)
    module.passes.append(PassSnapshot(sequence, match["pipeline"], match["after"], match["before"], path))


def _add_stage(module: ModuleFiles, match: re.Match[str], path: str, size: int) -> None:
    module.platform = module.platform or match["platform"]
    stage, side, ending = match["stage"], match["side"], match["ending"]
    if side:
        if ending == "txt":
            module.side[side] = path
    elif ending == "hlo.pb":
        module.protos[stage] = path
        module.size += 0 if stage in module.texts else size
    elif ending != "pb":
        module.texts[stage] = path
        module.size += size


def _paired(modules: list[ModuleFiles]) -> list[ModuleFiles]:
    """Join a module's file before optimisation with its files after it where they carry different numbers.

    Within one directory and name, the first file before optimisation that stands alone belongs to the first optimised
    module that lacks one and was numbered later.
    """
    by_name: dict[tuple[str, str], list[ModuleFiles]] = defaultdict(list)
    for module in modules:
        by_name[module.directory, module.name].append(module)
    dropped: set[int] = set()
    for group in by_name.values():
        group.sort(key=lambda module: module.number)
        waiting = [module for module in group if module.stages == [STAGES[0]]]
        for module in group:
            if not module.stages or STAGES[0] in module.stages or not waiting or waiting[0].number > module.number:
                continue
            before = waiting.pop(0)
            _absorb(module, before)
            dropped.add(id(before))
    return [module for module in modules if id(module) not in dropped]


def _absorb(module: ModuleFiles, before: ModuleFiles) -> None:
    module.texts = {**before.texts, **module.texts}
    module.protos = {**before.protos, **module.protos}
    module.compile = {**before.compile, **module.compile}
    module.passes = sorted([*before.passes, *module.passes], key=lambda snapshot: snapshot.sequence)
    module.size += before.size
