"""Hears of every program that JAX lowers, compiles and calls, and keeps what belongs in the bundle."""

from __future__ import annotations

import hashlib
import threading
import time
import weakref
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hlotrace import bundle
from hlotrace.capture import failures, paths, provenance, seams, signatures
from hlotrace.capture.listener import Call
from hlotrace.capture.paths import Names
from hlotrace.capture.spec import Event

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from hlotrace.capture.provenance import Definition
    from hlotrace.capture.session import Record, Session

_MARK = "_hlotrace_ticket"


@dataclass
class Origin:
    """What is known of a function once it is traced.

    Attributes:
        kind: `program`, `eager` (one primitive that JAX runs by itself) or `helper` (a library's own function).
        names: of the leaves of its arguments; results: of what it returns, null where JAX's own names are right.
        lowering: whether its lowering has begun, once.
    """

    kind: str
    definition: Definition | None
    function: str
    names: tuple[str, ...] = ()
    results: tuple[str, ...] | None = None
    static: dict[str, str] = field(default_factory=dict)
    trace_ns: int | None = None
    lowering: bool = False


@dataclass
class Ticket:
    """What a lowered program, JAX's MeshComputation, is known as until it is compiled.

    Attributes:
        argument_types: JAX's MetaTy of every argument, captured constants first.
        parameters: those of the lowering.
        record: what the latest compile was kept as.
    """

    origin: Origin
    argument_types: tuple[Any, ...]
    parameters: dict[str, Any]
    lower_ns: int
    digest: bytes | None = None
    record: Record | None = None


class _Current(threading.local):
    ticket: Ticket | None = None
    record: Record | None = None
    backend_ns: int | None = None


def ticket_of(computation: Any) -> Ticket | None:
    """What a lowered program is known as; None when it was lowered before the hooks were in place."""
    found: Ticket | None = getattr(computation, _MARK, None)
    return found


class Watch:
    """The hooks of one session; `install` sets them, `remove` takes them away."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.seams = seams.Seams()
        self.current = _Current()
        self._origins: weakref.WeakKeyDictionary[Any, Origin] = weakref.WeakKeyDictionary()
        self._known: dict[tuple[Any, ...], Record] = {}
        self._asked_for: dict[int, Any] = {}

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
        seams.on_jit(self.seams, self.jitted)
        seams.on_traced(self.seams, self.traced)
        seams.around_lowering(self.seams, self.lower)
        seams.around_compile(self.seams, self.compile)
        seams.around_backend_compile(self.seams, self.backend_compile)
        seams.forget_lowerings()

    def remove(self) -> None:
        """Let go of JAX."""
        self.seams.restore()

    # -- tracing

    def jitted(self, info: Any, filename: str) -> None:
        """A function was wrapped by `jax.jit`; by the user, a library's function is a program too."""
        if not provenance.is_library(filename):
            self._asked_for[id(info)] = info

    def traced(self, fun: Any, info: Any, args: Any, kwargs: Any, parameters: Any, nanoseconds: int) -> None:
        """A function's jaxpr is there: remember whose it is."""
        jaxpr = parameters.params["jaxpr"]
        if jaxpr in self._origins:
            return
        eager = bool(getattr(fun, "_apply_primitive", False))
        definition = provenance.of_body(jaxpr) if eager else provenance.of_function(fun) or provenance.of_traced(jaxpr)
        if definition is None and id(info) in self._asked_for:
            definition = provenance.of_any_function(fun)
        kind = "program" if definition else "eager" if eager else "helper"
        inner = provenance.unwrap(fun)
        origin = self._origins[jaxpr] = Origin(
            kind=kind,
            definition=definition,
            function=definition.function
            if definition
            else str(getattr(inner, "__qualname__", parameters.params["name"])),
            names=tuple(parameters.arg_names),
            trace_ns=nanoseconds,
        )
        if definition is not None:
            results = jaxpr.debug_info.safe_result_paths(len(jaxpr.out_avals))
            names = Names(origin.names, tuple(results), signatures.static_values(fun, info, args, kwargs))
            names = paths.as_written(names, fun, args, parameters.out_tree, definition.parameters)
            origin.names, origin.results, origin.static = names.arguments, names.results, names.static

    def origin(self, jaxpr: Any, name: str) -> Origin:
        """Of a jaxpr that reaches the compiler; one that JAX derived (a gradient's) tells it by its debug info."""
        found = self._origins.get(jaxpr)
        if found is None:
            debug = jaxpr.debug_info
            source = str(debug.func_src_info or name)
            definition = provenance.of_name(source.partition(" ")[0], source) or provenance.of_traced(jaxpr)
            function = definition.function if definition else name
            names = tuple(debug.safe_arg_names(len(jaxpr.in_avals)))
            found = Origin("program" if definition else "helper", definition, function, names)
            self._origins[jaxpr] = found
        return found

    # -- lowering

    def lower(self, original: Callable[..., Any], args: Any, **parameters: Any) -> Any:
        """Lower as JAX does, and tie the result to where it came from."""
        origin = self.origin(parameters["jaxpr"], parameters["name"])
        return self.lowered(original, origin, args, parameters)

    def lowered(self, original: Callable[..., Any], origin: Origin, args: Any, parameters: dict[str, Any]) -> Any:
        """JAX's own lowering, measured; a cached one keeps its first ticket."""
        self._say_lowering(origin, parameters)
        start = time.perf_counter_ns()
        computation = original(args, **parameters)
        elapsed = time.perf_counter_ns() - start
        if ticket_of(computation) is None:
            setattr(computation, _MARK, Ticket(origin, tuple(args), parameters, elapsed))
        return computation

    def _say_lowering(self, origin: Origin, parameters: dict[str, Any]) -> None:
        if origin.kind == "program" and not origin.lowering:
            origin.lowering = True
            self.session.say(Event("lower", f"jit_{parameters['name']}", self.session.target_name))

    # -- compiling

    def compile(self, original: Callable[..., Any], computation: Any, **options: Any) -> Any:
        """Compile, a program with its dumps into a folder of its own."""
        ticket = ticket_of(computation)
        plain = all(value is None for value in options.values())
        if ticket is None or (plain and computation._executable is not None):
            return original(computation, **options)
        if ticket.origin.kind != "program":
            return self._compile_other(original, computation, ticket, options)
        return self._compile_program(original, computation, ticket, options)

    def _compile_other(
        self, original: Callable[..., Any], computation: Any, ticket: Ticket, options: dict[str, Any]
    ) -> Any:
        outer = self.current.ticket
        self.current.ticket = ticket
        try:
            return original(computation, **options)
        finally:
            self.current.ticket = outer

    def _compile_program(
        self, original: Callable[..., Any], computation: Any, ticket: Ticket, options: dict[str, Any]
    ) -> Any:
        devices = options["device_assignment"] or computation._device_list
        target = self.target_of(devices)
        name = module_name(computation)
        key = (ticket.origin.function, name, target, self._digest(computation, ticket), repr(options))
        record = self._known.get(key)
        if record is None:
            record = self._known[key] = self.session.start_program(name, target)
        return self._dumped(original, computation, ticket, record, target, options)

    def _dumped(
        self,
        original: Callable[..., Any],
        computation: Any,
        ticket: Ticket,
        record: Record,
        target: str,
        options: dict[str, Any],
    ) -> Any:
        ticket.record = record
        first = record.compiles == 0
        record.compiles += 1
        self.session.say(Event("compile", record.module, target))
        kept = computation._compiler_options_kvs
        if first:
            computation._compiler_options_kvs = (*kept, *dump_options(record, passes=self.session.spec.passes))
        outer, self.current.ticket, self.current.record = self.current.ticket, ticket, record
        self.current.backend_ns = None
        start = time.perf_counter_ns()
        try:
            executable = original(computation, **options)
        except Exception as error:
            self._failed(computation, ticket, record, target, failures.compile_failure(str(error)))
            raise
        finally:
            computation._compiler_options_kvs = kept
            self.current.ticket, self.current.record = outer, None
        elapsed = self.current.backend_ns or time.perf_counter_ns() - start
        if first:
            program = self.describe(computation, ticket, record, target, executable, compile_ns=elapsed)
            self.session.finish_program(record, program)
        self.session.say(Event("compile", record.module, target, seconds=elapsed / 1e9))
        self.adopt(computation, record, executable)
        return executable

    def _failed(self, computation: Any, ticket: Ticket, record: Record, target: str, failure: bundle.Failure) -> None:
        program = self.describe(computation, ticket, record, target, None, failure=failure)
        self.session.finish_program(record, program)
        self.session.say(Event("failed", record.module, target, detail=failure.message.partition("\n")[0]))

    def backend_compile(
        self,
        original: Callable[[], Any],
        backend: Any,
        module: Any,
        devices: Any,  # noqa: ARG002
        options: Any,
        callbacks: Any,
        executable_devices: Any,
    ) -> Any:
        """The compiler itself: measured, and past JAX's persistent cache where dumps are wanted."""
        ticket, record = self.current.ticket, self.current.record
        start = time.perf_counter_ns()
        if record is not None:
            from jax._src import compiler

            executable = compiler.backend_compile_and_load(backend, module, executable_devices, options, callbacks)
            self.current.backend_ns = time.perf_counter_ns() - start
            return executable
        executable = original()
        elapsed = time.perf_counter_ns() - start
        name = mlir_name(module)
        kind, definition = (ticket.origin.kind, ticket.origin.definition) if ticket else ("helper", None)
        self.session.count_other(name, kind, definition, elapsed)
        return executable

    def adopt(self, computation: Any, record: Record, executable: Any) -> None:
        """Hear of the executable's calls."""
        real = executable.unsafe_call
        if not isinstance(real, ProgramCall):
            executable._unsafe_call = ProgramCall(self.session, record, executable, real)

    def target_of(self, devices: Iterable[Any]) -> str:
        """What the devices are, in a word: this machine's platform, or a script's own topology."""
        first = next(iter(devices))
        return str(first.platform)

    @staticmethod
    def _digest(computation: Any, ticket: Ticket) -> bytes:
        if ticket.digest is None:
            ticket.digest = hashlib.sha256(module_text(computation._hlo)).digest()
        return ticket.digest

    def describe(
        self,
        computation: Any,
        ticket: Ticket,
        record: Record,
        target: str,
        executable: Any,
        *,
        compile_ns: int | None = None,
        failure: bundle.Failure | None = None,
    ) -> bundle.Program:
        """The manifest's entry of a program, compiled or not."""
        compiled, parameters, jaxpr = computation.compile_args, ticket.parameters, ticket.parameters["jaxpr"]
        ins, outs = _shardings(computation, ticket, executable)
        devices = list(computation._device_list or ())
        results = ticket.origin.results or jaxpr.debug_info.safe_result_paths(len(jaxpr.out_avals))
        mesh = signatures.first_mesh(
            [parameters["ctx_mesh"], *ins, *outs, *(compiled.get("intermediate_shardings") or ())]
        )
        ins, outs = ([signatures.named(sharding, mesh) for sharding in each] for each in (ins, outs))
        return bundle.Program(
            module=record.module,
            name=module_name(computation),
            function=ticket.origin.function,
            defined_at=ticket.origin.definition.place if ticket.origin.definition else None,
            target=target,
            platform=str(devices[0].platform) if devices else "",
            device_kind=str(devices[0].device_kind) if devices else None,
            device_count=len(devices),
            arguments=signatures.arguments(jaxpr.in_avals, ticket.origin.names, ins, parameters["donated_invars"]),
            outputs=signatures.outputs(jaxpr.out_avals, results, outs),
            static_arguments=ticket.origin.static,
            mesh=signatures.mesh_axes(mesh),
            trace_ns=ticket.origin.trace_ns,
            lower_ns=ticket.lower_ns,
            compile_ns=compile_ns,
            memory_analysis=signatures.memory_analysis(executable) if executable is not None else None,
            cost_analysis=signatures.cost_analysis(executable) if executable is not None else None,
            failure=failure,
        )


class ProgramCall:
    """Stands before an executable's call: counts it, and tells the listeners.

    JAX's fast path in C++ wants its own class here, so every call of the program passes through.
    """

    def __init__(self, session: Session, record: Record, executable: Any, real: Any) -> None:
        self._session = session
        self._record = record
        self._executable = executable
        self._real = real

    def __call__(self, *args: Any) -> Any:
        """Run the program."""
        self._record.calls += 1
        if not self._session.listeners:
            return self._real(*args)
        call = Call(self._record.module, self._executable, self._record.calls, args, self._real)
        for listener in self._session.listeners:
            listener.before_call(call)
        outputs = self._real(*args)
        for listener in self._session.listeners:
            listener.after_call(call, outputs)
        return outputs

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


def dump_options(record: Record, *, passes: bool) -> tuple[tuple[str, Any], ...]:
    """Compiler options of one compile that write its dumps, all of them and only its own, into its folder."""
    options = {
        "xla_dump_to": str(record.folder),
        "xla_dump_hlo_as_text": True,
        "xla_dump_hlo_as_proto": True,
        "xla_dump_hlo_module_re": ".*",
    }
    if passes:
        options["xla_dump_hlo_pass_re"] = ".*"
    return tuple(options.items())


def module_name(computation: Any) -> str:
    """The name that the compiler gives the module."""
    return mlir_name(computation._hlo)


def mlir_name(module: Any) -> str:
    """The name of an MLIR module."""
    return str(module.operation.attributes["sym_name"].value)


def module_text(module: Any) -> bytes:
    """An MLIR module as text without source locations, which hold the line of the call."""
    text: bytes = module.operation.get_asm(binary=True, enable_debug_info=False)
    return text


def _shardings(computation: Any, ticket: Ticket, executable: Any) -> tuple[list[Any], list[Any]]:
    """Of every argument and output: the compiler's answer, else what the call or the function said."""
    asked: list[Any] = [
        given if hasattr(given, "memory_kind") else getattr(argument, "sharding", None)
        for given, argument in zip(ticket.parameters["in_shardings"], ticket.argument_types, strict=True)
    ]
    outs = _without_mutated(computation, computation.compile_args["out_shardings"])
    if executable is None:
        return asked, outs
    extra = len(executable._in_shardings) - len(executable._kept_var_idx)
    if extra == 0:
        for index, sharding in zip(sorted(executable._kept_var_idx), executable._in_shardings, strict=True):
            if index < len(asked):
                asked[index] = sharding
    return asked, _without_mutated(computation, executable._out_shardings)


def _without_mutated(computation: Any, outs: Any) -> list[Any]:
    """Of the outputs that the function returns; a program gives the new values of its mutable arguments too."""
    mutation = computation.compile_args.get("mut")
    if mutation is None:
        return list(outs)
    return [sharding for sharding, replaces in zip(outs, mutation.out_mut, strict=True) if replaces is None]
