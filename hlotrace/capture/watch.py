"""Hears of every program that JAX lowers, compiles and calls, and keeps what belongs in the bundle."""

from __future__ import annotations

import hashlib
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hlotrace.capture import describe, failures, provenance, seams
from hlotrace.capture.calls import ProgramCall
from hlotrace.capture.dumps import dump_options, give_user_theirs
from hlotrace.capture.origins import Origins
from hlotrace.capture.spec import Event
from hlotrace.capture.tickets import (
    LONGEST_FUNCTION,
    Asked,
    Origin,
    Ticket,
    attach,
    mlir_name,
    mlir_text,
    module_name,
    short_name,
    ticket_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from hlotrace import bundle
    from hlotrace.capture.session import Record, Session


class _Current(threading.local):
    """The compile that this thread is in."""

    ticket: Ticket | None = None
    record: Record | None = None
    backend_ns: int | None = None
    tracing: bool = False


class Watch:
    """The hooks of one session; `install` sets them, `remove` takes them away."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.seams = seams.Seams()
        self.origins = Origins()
        self.current = _Current()
        self._known: dict[tuple[Any, ...], Record] = {}
        self._described_as: dict[Any, str] = {}
        self._lock = threading.Lock()

    def install(self) -> None:
        """Take hold of JAX, which is imported.

        Raises:
            CaptureError: this JAX lacks one of the seams; nothing is left changed.
        """
        try:
            self._take_hold()
        except BaseException:
            self.seams.restore()
            raise

    def _take_hold(self) -> None:
        seams.on_topology(self.seams, self._described)
        seams.on_jit(self.seams, self.origins.jitted)
        seams.around_tracing(self.seams, self.trace)
        seams.on_traced(self.seams, self.origins.traced)
        seams.around_lowering(self.seams, self.lower)
        seams.around_compile(self.seams, self.compile)
        seams.around_backend_compile(self.seams, self.backend_compile)
        seams.forget_lowerings()

    def remove(self) -> None:
        """Let go of JAX."""
        self.seams.restore()
        seams.forget_lowerings()

    # -- tracing and lowering

    def trace(self, original: Callable[[], Any], function: Any) -> Any:
        """Say that a user's function is being traced, those it calls left out."""
        definition = None if self.current.tracing else provenance.of_function(function)
        if definition is None:
            return original()
        name, start = definition.function, time.perf_counter()
        self.current.tracing = True
        self.session.say(Event("trace", name, self.session.target_name))
        try:
            return original()
        finally:
            self.current.tracing = False
            self.session.say(Event("trace", name, self.session.target_name, time.perf_counter() - start))

    def lower(self, original: Callable[..., Any], args: Any, **parameters: Any) -> Any:
        """Lower as JAX does, and tie the result to where it came from."""
        origin = self.origins.of(parameters["jaxpr"], parameters["name"])
        name = short_name(parameters["name"], LONGEST_FUNCTION)
        return self.lowered(original, origin, args, {**parameters, "name": name})

    def lowered(self, original: Callable[..., Any], origin: Origin, args: Any, parameters: dict[str, Any]) -> Any:
        """JAX's own lowering, measured."""
        ticket = Ticket(origin, Asked.of(args, parameters) if origin.kind == "program" else None)
        said = origin.kind == "program" and not origin.lowered
        event = Event("lower", f"jit_{parameters['name']}", self.session.target_name)
        if said:
            origin.lowered = True
            self.session.say(event)
        start = time.perf_counter_ns()
        computation = original(args, **parameters)
        ticket.lower_ns = time.perf_counter_ns() - start
        if said:
            self.session.say(replace(event, seconds=ticket.lower_ns / 1e9))
        attach(computation, ticket)
        return computation

    # -- compiling

    def compile(self, original: Callable[..., Any], computation: Any, **options: Any) -> Any:
        """Compile, a program with its dumps into a folder of its own."""
        ticket = ticket_of(computation)
        plain = all(value is None for value in options.values())
        if ticket is None or (plain and computation._executable is not None):
            return original(computation, **options)
        if ticket.origin.kind != "program":
            return self.compile_other(original, computation, ticket, options)
        return self._compile_program(original, computation, ticket, options)

    def compile_other(
        self, original: Callable[..., Any], computation: Any, ticket: Ticket, options: dict[str, Any]
    ) -> Any:
        """Compile what is only counted."""
        outer, self.current.ticket = self.current.ticket, ticket
        try:
            return original(computation, **options)
        finally:
            self.current.ticket = outer

    def _compile_program(
        self, original: Callable[..., Any], computation: Any, ticket: Ticket, options: dict[str, Any]
    ) -> Any:
        target = self.target_of(options["device_assignment"] or computation._device_list)
        if ticket.digest is None:
            ticket.digest = hashlib.sha256(mlir_text(computation._hlo)).digest()
        name = module_name(computation)
        key = (ticket.origin.function, name, target, ticket.digest, repr(options))
        with self._lock:
            if key not in self._known:
                self._known[key] = self.session.start_program(name, target)
            ticket.record = record = self._known[key]
            record.compiles += 1
        self.session.say(Event("compile", record.module, target))
        try:
            executable, elapsed = self._dumped(original, computation, ticket, record, options)
        except Exception as error:
            failure = failures.compile_failure(str(error))
            self.failed(record, describe.compiled(computation, ticket, record, target, None, failure=failure))
            raise
        if record.program is None:
            program = describe.compiled(computation, ticket, record, target, executable, compile_ns=elapsed)
            self.session.finish_program(record, program)
        self.session.say(Event("compile", record.module, target, seconds=elapsed / 1e9))
        self.adopt(computation, record, executable)
        return executable

    def _dumped(
        self,
        original: Callable[..., Any],
        computation: Any,
        ticket: Ticket,
        record: Record,
        options: dict[str, Any],
    ) -> tuple[Any, int]:
        """The executable, and the nanoseconds that the compiler took; only a record's first compile is dumped."""
        kept, outer = computation._compiler_options_kvs, self.current.ticket
        if record.compiles == 1:
            computation._compiler_options_kvs = (*kept, *dump_options(record.folder, passes=self.session.spec.passes))
        self.current.ticket, self.current.record, self.current.backend_ns = ticket, record, None
        start = time.perf_counter_ns()
        try:
            executable = original(computation, **options)
        finally:
            computation._compiler_options_kvs = kept
            self.current.ticket, self.current.record = outer, None
            if record.compiles == 1:
                give_user_theirs(record.folder)
        return executable, self.current.backend_ns or time.perf_counter_ns() - start

    def failed(self, record: Record, program: bundle.Program) -> None:
        """Keep a program that gave no executable."""
        self.session.finish_program(record, program)
        reason = program.failure.message.partition("\n")[0] if program.failure else ""
        self.session.say(Event("failed", record.module, program.target, detail=reason))

    def backend_compile(
        self,
        original: Callable[[], Any],
        backend: Any,
        module: Any,
        devices: Any,  # noqa: ARG002 (the seam's)
        options: Any,
        callbacks: Any,
        executable_devices: Any,
    ) -> Any:
        """The compiler itself: measured, and past JAX's persistent cache where dumps are wanted."""
        self.session.compiling()
        ticket = self.current.ticket
        start = time.perf_counter_ns()
        if self.current.record is not None:
            from jax._src import compiler

            executable = compiler.backend_compile_and_load(backend, module, executable_devices, options, callbacks)
            self.current.backend_ns = time.perf_counter_ns() - start
            return executable
        executable = original()
        elapsed = time.perf_counter_ns() - start
        kind, definition = (ticket.origin.kind, ticket.origin.definition) if ticket else ("helper", None)
        self.session.count_other(mlir_name(module), kind, definition, elapsed)
        return executable

    def adopt(self, computation: Any, record: Record, executable: Any) -> None:  # noqa: ARG002 (an offline watch's)
        """Hear of the executable's calls; one for a topology without hardware has none."""
        if not hasattr(executable.xla_executable, "local_devices"):
            return
        real = executable.unsafe_call
        if not isinstance(real, ProgramCall):
            executable._unsafe_call = ProgramCall(self.session, record, executable, real)

    def _described(self, name: str, devices: Iterable[Any]) -> None:
        """A script made a topology of its own, to compile for it ahead of time."""
        self._described_as |= dict.fromkeys(devices, name)

    def target_of(self, devices: Iterable[Any]) -> str:
        """What the devices are, in a word: a topology that the script described, or this machine's platform."""
        first = next(iter(devices))
        return self._described_as.get(first) or str(first.platform)
