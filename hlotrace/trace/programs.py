"""Which module a traced op belongs to, and what the HLO says of its instruction."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hlotrace.tables import LINES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hlotrace.trace.lanes import Op

MODULE_COLUMNS = ("module", "name", "program_id", "platform")
INSTRUCTION_COLUMNS = (
    *("module", "instruction", "opcode", "category", "op_name", *LINES, "flops"),
    *("hbm_read_bytes", "hbm_write_bytes", "bytes", "operands", "attributes"),
)
Fact = dict[str, Any]


@dataclass(frozen=True)
class Programs:
    """The modules whose HLO is there.

    Attributes:
        modules, instructions: these columns of the tables.
        platform: the trace's, which decides between modules of one name that were compiled for several.
    """

    modules: list[dict[str, Any]]
    instructions: pa.Table
    platform: str | None = None

    @cached_property
    def _rows(self) -> dict[tuple[str | None, str | None], int]:
        """Where each instruction of each module stands, at the last stage that has it."""
        modules, names = (self.instructions[column].to_pylist() for column in ("module", "instruction"))
        return {key: row for row, key in enumerate(zip(modules, names, strict=True))}

    def modules_of(self, ops: Iterable[Op]) -> dict[tuple[str | None, int | None], str | None]:
        """The module, as `modules` names it, of each (module, program id) that ops name.

        By program id where it is known; else by the name, of several the one that holds most of the instructions.
        Where there is none it is the name in the trace.
        """
        named: dict[tuple[str | None, int | None], set[str]] = defaultdict(set)
        for op in ops:
            named[op.module, op.program_id].add(op.instruction or "")
        return {key: self._module_of(*key, instructions) for key, instructions in named.items()}

    def modules_of_names(
        self, names: Iterable[tuple[str | None, int | None]]
    ) -> dict[tuple[str | None, int | None], str | None]:
        """The module, as `modules` names it, of each (module, program id)."""
        return {key: self._module_of(*key, set()) for key in names}

    def _module_of(self, name: str | None, program_id: int | None, instructions: set[str]) -> str | None:
        by_id = [row for row in self.modules if program_id is not None and row["program_id"] == program_id]
        if name is not None:
            by_id = [row for row in by_id if row["name"] == name]
        known = by_id or [row for row in self.modules if name is not None and row["name"] == name]
        known = [row for row in known if row["platform"] in (None, self.platform)] or known
        if not known:
            return name
        best = max(known, key=lambda row: sum((row["module"], text) in self._rows for text in instructions))
        return str(best["module"])

    def facts(self, keys: Iterable[tuple[str | None, str | None]]) -> dict[tuple[str | None, str | None], Fact]:
        """What is known of each instruction that is found, by module and name."""
        found = [(key, row) for key in keys if (row := self._rows.get(key)) is not None]
        table = self.instructions.take(pa.array([row for _, row in found], pa.int64()))
        return {key: fact for (key, _), fact in zip(found, table.to_pylist(), strict=True)}
