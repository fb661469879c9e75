"""What the app shows at a moment: everything that a pasted link brings back. The browser keeps it in the URL."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

HOME = "overview"

SelectionKind = Literal["op", "before", "buffer", "source", "scope", "opcode", "category"]
SELECTION_KINDS: tuple[SelectionKind, ...] = ("op", "before", "buffer", "source", "scope", "opcode", "category")
"""`op` is an instruction of the final program, `before` one of the program before optimisation."""

STAGE_CHOICES = ("after", "before")
AREA_CHOICES = ("time", "bytes", "count")
BY_CHOICES = ("opcode", "category", "source", "scope")


@dataclass(frozen=True)
class Selection:
    """What was chosen: a kind, and the name it goes by in the dump."""

    kind: SelectionKind
    name: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"

    @classmethod
    def parse(cls, text: str | None) -> Selection | None:
        """`op:fusion.12` as a selection; None for nothing and for a kind that there is not."""
        kind, colon, name = (text or "").partition(":")
        known = next((item for item in SELECTION_KINDS if item == kind), None)
        return cls(known, name) if known and colon and name else None


@dataclass(frozen=True)
class State:
    """Everything that a link restores; None stands for what the app chooses itself.

    Attributes:
        page: the path without its slash; empty means the overview.
        select: the one selection that every page shows.
        space: the memory space's number.
        at: the position in the schedule.
        by: what the ops are grouped by.
        stage: which program the list of instructions shows.
        area: what the treemap's areas mean.
    """

    page: str = HOME
    bundle: str | None = None
    module: str | None = None
    select: Selection | None = None
    space: int | None = None
    at: int | None = None
    by: str | None = None
    stage: str | None = None
    area: str | None = None

    @classmethod
    def of(cls, values: dict[str, Any]) -> State:
        """The state that parameters describe as the browser's stores hold them: text, or null."""
        return cls(
            page=str(values.get("page") or HOME),
            bundle=values.get("bundle") or None,
            module=values.get("module") or None,
            select=Selection.parse(values.get("select")),
            space=_integer(values.get("space")),
            at=_integer(values.get("at")),
            by=_choice(values.get("by"), BY_CHOICES),
            stage=_choice(values.get("stage"), STAGE_CHOICES),
            area=_choice(values.get("area"), AREA_CHOICES),
        )


def _integer(value: Any) -> int | None:
    text = str(value) if value is not None else ""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None


def _choice(value: Any, choices: tuple[str, ...]) -> str | None:
    return value if value in choices else None
