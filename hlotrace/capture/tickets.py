"""What a function is known as from its trace to its compile."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hlotrace.capture.provenance import Definition
    from hlotrace.capture.session import Record

_MARK = "_hlotrace_ticket"


@dataclass
class Origin:
    """What is known of a function once it is traced.

    Attributes:
        kind: `program`, `eager` (one primitive that JAX runs by itself) or `helper` (a library's own function).
        names: of the leaves of its arguments; results: of what it returns, null where JAX's own names are right.
        lowered: whether it was lowered before.
    """

    kind: str
    definition: Definition | None
    function: str
    names: tuple[str, ...] = ()
    results: tuple[str, ...] | None = None
    static: dict[str, str] = field(default_factory=dict)
    trace_ns: int | None = None
    lowered: bool = False


@dataclass
class Ticket:
    """What a lowered program, JAX's MeshComputation, is known as until it is compiled.

    Attributes:
        argument_types: JAX's MetaTy of every argument, captured constants first.
        parameters: those of the lowering.
        lower_ns: null when the lowering failed.
        record: what the latest compile was kept as.
    """

    origin: Origin
    argument_types: tuple[Any, ...]
    parameters: dict[str, Any]
    lower_ns: int | None = None
    digest: bytes | None = None
    record: Record | None = None


def ticket_of(computation: Any) -> Ticket | None:
    """What a lowered program is known as; None when it was lowered before the hooks were in place."""
    found: Ticket | None = getattr(computation, _MARK, None)
    return found


def attach(computation: Any, ticket: Ticket) -> None:
    """Tie a ticket to a lowered program; JAX caches those, and a cached one keeps its first ticket."""
    if ticket_of(computation) is None:
        setattr(computation, _MARK, ticket)


def module_name(computation: Any) -> str:
    """The name that the compiler gives a lowered program's module."""
    return mlir_name(computation._hlo)


def mlir_name(module: Any) -> str:
    """The name of an MLIR module."""
    return str(module.operation.attributes["sym_name"].value)


def mlir_text(module: Any) -> bytes:
    """An MLIR module as text without source locations, which hold the line of the call."""
    text: bytes = module.operation.get_asm(binary=True, enable_debug_info=False)
    return text
