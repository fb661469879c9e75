"""What a function is known as from its trace to its compile."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hlotrace.capture.provenance import Definition
    from hlotrace.capture.session import Record

_MARK = "_hlotrace_ticket"
LONGEST_MODULE = 120
"""Bytes: XLA leaves out a dump whose name, with what it puts around the module's, does not fit a file's 255."""
LONGEST_FUNCTION = LONGEST_MODULE - len("shard_map_")
"""A module is named by JAX's transformation and the function."""


@dataclass
class Origin:
    """What is known of a function once it is traced.

    Attributes:
        kind: `program`, `eager` (one primitive that JAX runs by itself), `helper` (a library's own function) or `host`
            (a program that the script puts on the host CPU, beside the target).
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

    @property
    def described(self) -> str:
        """The function and where it is defined, for people."""
        place = self.definition.place if self.definition else None
        return f"{self.function} ({place})" if place else self.function


@dataclass(frozen=True)
class Asked:
    """What a lowering was asked for. It holds no jaxpr: JAX drops a lowering with its jaxpr, and the arrays in that.

    Attributes:
        ins, outs: shardings; of an argument what the function asks for, else what the call brought.
        results: paths of the outputs as JAX names them.
    """

    in_avals: tuple[Any, ...]
    out_avals: tuple[Any, ...]
    ins: tuple[Any, ...]
    outs: tuple[Any, ...]
    donated: tuple[bool, ...]
    mesh: Any
    results: tuple[str, ...]

    @classmethod
    def of(cls, argument_types: Any, parameters: dict[str, Any]) -> Asked:
        """Of JAX's MetaTy of every argument, captured constants first, and the parameters of the lowering."""
        jaxpr = parameters["jaxpr"]
        ins = (
            given if hasattr(given, "memory_kind") else getattr(argument, "sharding", None)
            for given, argument in zip(parameters["in_shardings"], argument_types, strict=True)
        )
        return cls(
            in_avals=tuple(jaxpr.in_avals),
            out_avals=tuple(jaxpr.out_avals),
            ins=tuple(ins),
            outs=tuple(parameters["out_shardings"]),
            donated=tuple(parameters["donated_invars"]),
            mesh=parameters["ctx_mesh"],
            results=tuple(jaxpr.debug_info.safe_result_paths(len(jaxpr.out_avals))),
        )


@dataclass
class Ticket:
    """What a lowered program, JAX's MeshComputation, is known as until it is compiled.

    Attributes:
        asked: null for what is only counted.
        lower_ns: null when the lowering failed.
        record: what the latest compile was kept as.
    """

    origin: Origin
    asked: Asked | None = None
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


def short_name(name: str, longest: int) -> str:
    """The name, or as much of it as `longest` bytes hold beside a digest of the whole."""
    if len(name.encode()) <= longest:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:8]
    return f"{name.encode()[: longest - 9].decode(errors='ignore')}_{digest}"


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
