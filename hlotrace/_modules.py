"""One module read from its files: its tables at every stage, and its row of `modules`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from hlotrace.devices import chip_of
from hlotrace.hlo.branches import costliest
from hlotrace.hlo.schedule import is_scheduled
from hlotrace.hlo.tables import module_tables
from hlotrace.parsers.dump_directory import STAGES, find_modules

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hlotrace.errors import ParseError
    from hlotrace.hlo.assignment import BufferAssignment
    from hlotrace.hlo.module import HloModule

BEFORE, AFTER = STAGES[0], STAGES[1]
UNKNOWN = -1


@dataclass
class Problems:
    """What was met on the way, as rows of `problems`."""

    rows: list[dict[str, str]] = field(default_factory=list)

    def add(self, file: str, place: str, what: str, consequence: str) -> None:
        """Write one down, unless the same stands there: modules of one file may share it."""
        row = {"file": file, "place": place, "what": what, "consequence": consequence}
        if row not in self.rows[-1:]:
            self.rows.append(row)

    def add_all(self, file: str, found: Iterable[tuple[str, str, str]]) -> None:
        """Write down what a reader collected."""
        for place, what, consequence in found:
            self.add(file, place, what, consequence)

    def add_error(self, file: str, error: ParseError, consequence: str) -> None:
        """Write down why a file could not be read."""
        self.add(file, (error.place or "").removeprefix(file).lstrip(":"), error.what, consequence)


@dataclass
class Stage:
    """A module at one stage, and the file it was read from."""

    name: str
    path: str
    hlo: HloModule
    assignment: BufferAssignment | None = None


@dataclass
class Part:
    """One module: its tables by name, and its columns of `modules`."""

    tables: dict[str, list[pa.Table]]
    row: dict[str, Any]


def make_part(stages: list[Stage], row: dict[str, Any], schedule: tuple[str, ...] | None, problems: Problems) -> Part:
    """The tables of a module's stages, in the order of the pipeline; `fusions` and `predictions` are the final one's.

    Args:
        row: what is known of it already; `module`, `platform`, `target` and `device_kind` are.
        schedule: instructions in the order of the flattened schedule, where a dump lists them.
    """
    tables: dict[str, list[pa.Table]] = {"computations": [], "instructions": [], "fusions": [], "predictions": []}
    chip = chip_of(row["target"], row["device_kind"])
    for stage in stages:
        is_final = stage is stages[-1]
        problems.add_all(stage.path, stage.hlo.problems)
        made = module_tables(
            stage.hlo,
            module=row["module"],
            stage=stage.name,
            platform=row["platform"] or "",
            schedule=None if stage.name == BEFORE else schedule,
            chip=chip if is_final else None,
        )
        tables["computations"].append(made["computations"])
        tables["instructions"].append(made["instructions"])
        if is_final:
            tables["fusions"].append(made["fusions"])
            tables["predictions"].append(made["predictions"])
    return Part(tables, {**header_columns(stages), **figures(stages, tables["instructions"]), **row})


def header_columns(stages: list[Stage]) -> dict[str, Any]:
    """What the final stage's header says, and of partitions and replicas the stage that states most.

    A program over several slices is compiled for one of them: in its later stages only that one's partitions stand.
    """
    hlo = stages[-1].hlo
    partitions, replicas = max(map(_devices, stages[::-1]), key=prod)
    return {
        "name": hlo.name,
        "num_partitions": partitions,
        "num_replicas": replicas,
        "is_scheduled": is_scheduled(hlo),
        "stages": [stage.name for stage in stages],
        "final_stage": stages[-1].name,
        "instruction_count": hlo.instruction_count,
    }


def _devices(stage: Stage) -> tuple[int, int]:
    texts = (stage.hlo.attributes.get(name, "1") for name in ("num_partitions", "replica_count"))
    partitions, replicas = (int(text) if text.isdigit() else 1 for text in texts)
    return partitions, replicas


def figures(stages: list[Stage], instructions: list[pa.Table]) -> dict[str, Any]:
    """Launches before and after, FLOPs and cycles of one run."""
    final, first = instructions[-1], instructions[0]
    is_optimised = stages[-1].name != BEFORE
    return {
        "launches": _total(final, None) if is_optimised else None,
        "launches_without_flops": _without(final, "flops"),
        "launches_before": _total(first, None) if stages[0].name == BEFORE else None,
        "flops": _total(final, "flops"),
        "estimated_cycles": _total(final, "estimated_cycles"),
    }


def _total(instructions: pa.Table, column: str | None) -> int | None:
    """The sum over launches of a column times the executions; of the executions alone for None.

    Of a conditional's branches the costliest counts. What has no figure adds nothing, and nothing is not known where
    that is all there is; where a count of executions is not known, neither is the sum.
    """
    counted = _numbers(instructions, "is_launch", 0).astype(bool)
    runs = _numbers(instructions, "execution_count", UNKNOWN)
    figure = np.ones_like(runs) if column is None else _numbers(instructions, column, UNKNOWN)
    is_known = figure != UNKNOWN
    is_partial = bool((counted & ~is_known).any())
    counted &= is_known
    if (column is not None and not counted.any()) or (runs[counted] == UNKNOWN).any():
        return None
    amounts = runs[counted] * figure[counted]
    inside = instructions["branch"].filter(pa.array(counted))
    total = int(amounts.sum()) if inside.null_count == len(inside) else _of_branches(inside, amounts)
    return None if total == 0 and is_partial else total


def _of_branches(inside: pa.ChunkedArray, amounts: NDArray[np.int64]) -> int:
    return int(costliest(zip(inside.to_pylist(), amounts.tolist(), strict=True)))


def _without(instructions: pa.Table, column: str) -> int | None:
    """Launches, as often as they run, that have no figure in a column; null where a count is not known."""
    without = _numbers(instructions, "is_launch", 0).astype(bool) & (_numbers(instructions, column, UNKNOWN) == UNKNOWN)
    runs = _numbers(instructions, "execution_count", UNKNOWN)[without]
    return None if (runs == UNKNOWN).any() else int(runs.sum())


def _numbers(table: pa.Table, column: str, missing: int) -> NDArray[np.int64]:
    values: NDArray[np.int64] = table[column].cast(pa.int64()).fill_null(missing).to_numpy()
    return values


def platform_of_name(path: str) -> str | None:
    """The platform that a dumped file's name says; None where it says none."""
    name = path.rpartition("/")[2]
    found = find_modules({name: 0})
    return found[0].platform or ("tpu" if found[0].changelist else None) if found else None


def stage_of_name(path: str) -> str | None:
    """The stage that a file's name ends with; None where it names none."""
    name = path.rpartition("/")[2]
    return next((stage for stage in STAGES if re.search(rf"{stage}\.(txt|hlo|hlo\.pb|pb)$", name)), None)
