"""A program's entry in the manifest, of what JAX holds about it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hlotrace import bundle
from hlotrace.capture import signatures
from hlotrace.capture.tickets import module_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hlotrace.capture.session import Record
    from hlotrace.capture.tickets import Asked, Ticket


def compiled(
    computation: Any,
    ticket: Ticket,
    record: Record,
    target: str,
    executable: Any,
    *,
    compile_ns: int | None = None,
    failure: bundle.Failure | None = None,
) -> bundle.Program:
    """Of a lowered program; `executable` is null when the compiler gave none."""
    ins, outs = _shardings(computation, ticket, executable)
    inside = computation.compile_args.get("intermediate_shardings") or ()
    devices = list(computation._device_list or ())
    program = _program(ticket, record, target, module_name(computation), devices, ins, outs, inside)
    return replace(
        program,
        compile_ns=compile_ns,
        memory_analysis=signatures.memory_analysis(executable) if executable is not None else None,
        cost_analysis=signatures.cost_analysis(executable) if executable is not None else None,
        failure=failure,
    )


def not_lowered(
    ticket: Ticket, record: Record, target: str, name: str, devices: Sequence[Any], failure: bundle.Failure
) -> bundle.Program:
    """Of a program whose lowering failed."""
    asked = _asked(ticket)
    program = _program(ticket, record, target, name, devices, list(asked.ins), list(asked.outs), ())
    return replace(program, failure=failure)


def _program(
    ticket: Ticket,
    record: Record,
    target: str,
    name: str,
    devices: Sequence[Any],
    ins: list[Any],
    outs: list[Any],
    inside: Sequence[Any],
) -> bundle.Program:
    origin, asked = ticket.origin, _asked(ticket)
    mesh = signatures.first_mesh([asked.mesh, *ins, *outs, *inside])
    ins, outs = ([signatures.named(sharding, mesh) for sharding in each] for each in (ins, outs))
    return bundle.Program(
        module=record.module,
        name=name,
        function=origin.function,
        defined_at=origin.definition.place if origin.definition else None,
        target=target,
        platform=str(devices[0].platform) if devices else "",
        device_kind=str(devices[0].device_kind) if devices else None,
        device_count=len(devices),
        arguments=signatures.arguments(asked.in_avals, origin.names, ins, asked.donated),
        outputs=signatures.outputs(asked.out_avals, origin.results or asked.results, outs),
        static_arguments=origin.static,
        mesh=signatures.mesh_axes(mesh),
        trace_ns=origin.trace_ns,
        lower_ns=ticket.lower_ns,
    )


def _asked(ticket: Ticket) -> Asked:
    assert ticket.asked is not None, "only what is counted has none, and that is not described"
    return ticket.asked


def _shardings(computation: Any, ticket: Ticket, executable: Any) -> tuple[list[Any], list[Any]]:
    """Of every argument and output: the compiler's answer, else what was asked."""
    ins = list(_asked(ticket).ins)
    if executable is None:
        return ins, _without_mutated(computation, computation.compile_args["out_shardings"])
    kept = sorted(executable._kept_var_idx)
    if len(executable._in_shardings) == len(kept):
        for index, sharding in zip(kept, executable._in_shardings, strict=True):
            if index < len(ins):
                ins[index] = sharding
    return ins, _without_mutated(computation, executable._out_shardings)


def _without_mutated(computation: Any, outs: Any) -> list[Any]:
    """Of the outputs that the function returns; a program gives the new values of its mutable arguments too."""
    mutation = computation.compile_args.get("mut")
    if mutation is None:
        return list(outs)
    return [sharding for sharding, replaces in zip(outs, mutation.out_mut, strict=True) if replaces is None]
