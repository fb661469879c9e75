"""Compile-only capture: programs are lowered and compiled for a target that is not here, and give zeros when called."""

from __future__ import annotations

import os
import re
import threading
from collections import OrderedDict
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hlotrace.bundle import Failure
from hlotrace.capture import describe, placement, seams, standins
from hlotrace.capture.calls import ProgramCall
from hlotrace.capture.failures import first_line
from hlotrace.capture.guess import output_shardings
from hlotrace.capture.patience import Patience
from hlotrace.capture.spec import Event
from hlotrace.capture.tickets import Asked, Origin, Ticket, ticket_of
from hlotrace.capture.watch import Watch
from hlotrace.capture.zeros import LARGEST_REAL, ZeroCall, bytes_of
from hlotrace.errors import CaptureError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from hlotrace.capture.session import Record, Session
    from hlotrace.capture.topology import Topology

_MOST_KEPT = 64
"""Executables at hand for a script that wraps the same function in `jax.jit` again and again."""

_ASIDE = "_hlotrace_aside"


class _OnHost(Exception):
    """The script put a program on the host's CPU."""


class _Here(threading.local):
    lowering: bool = False
    calling: int = 0


class OfflineWatch(Watch):
    """Sends programs to the target's compiler, and leaves the small eager work around them to the CPU."""

    def __init__(self, session: Session, topology: Topology) -> None:
        super().__init__(session)
        self.topology = topology
        self._here = _Here()
        self._executables: OrderedDict[tuple[Any, ...], Any] = OrderedDict()

    def _take_hold(self) -> None:
        super()._take_hold()
        seams.around_device_assignment(self.seams, self._assign)
        seams.around_calls(self.seams, self._call)
        platform = self.topology.target.platform
        seams.stand_in_backend(self.seams, platform, len(self.topology.devices), self._wanted)
        seams.on_pmap_devices(self.seams, self._require_devices)
        standins.install(self.seams, self.topology, self.session)
        if not self.session.spec.run:
            placement.install(self.seams)

    def _wanted(self, option: int | None) -> None:
        """Tell the parent when the script's flags ask for more devices than there are."""
        flag = re.search(r"--xla_force_host_platform_device_count=(\d+)", os.environ.get("XLA_FLAGS", ""))
        wanted = option or (int(flag[1]) if flag else 0)
        if wanted > len(self.topology.devices):
            self.session.say(Event("needs_devices", target=self.topology.target.target, detail=str(wanted)))

    def _require_devices(self, found: Sequence[Any], size: int) -> None:
        """A pmap over more devices than there are fails with an error of other arrays' shapes in newer JAX."""
        if len(found) < size and self.topology.is_stand_in(found[0]):
            raise ValueError(f"pmap requires {size} logical devices, but only {len(found)} XLA devices are available")

    # -- lowering

    def _assign(self, found: tuple[Any, Any, int]) -> tuple[Any, Any, int]:
        """The topology's devices in the place of the fake ones, while a program is lowered for it."""
        _, devices, count = found
        if not self._here.lowering or devices is None or self.topology.is_described(devices[0]):
            return found
        if not self.topology.is_stand_in(devices[0]):
            raise _OnHost
        real = self.topology.of_fake(devices)
        return real[0].client, real, count

    def lowered(self, original: Callable[..., Any], origin: Origin, args: Any, parameters: dict[str, Any]) -> Any:
        """A program's lowering for the target; with `run`, beside the one that will really run."""
        if origin.kind != "program" or parameters["lowering_platforms"] is not None:
            return super().lowered(original, origin, args, parameters)
        try:
            computation = self._for_target(original, origin, args, parameters)
        except _OnHost:
            self.session.tell(f"{origin.described} stays on the host CPU, where the script puts it")
            return super().lowered(original, replace(origin, kind="host"), args, parameters)
        if not self.session.spec.run:
            return computation
        try:
            running = super().lowered(original, origin, args, parameters)
        except Exception as error:
            self._cannot_run(origin, error)
            return computation
        setattr(running, _ASIDE, computation)
        return running

    def _cannot_run(self, origin: Origin, error: Exception) -> None:
        self.session.tell(f"{origin.described} cannot run on the CPU and gives zeros: {first_line(error)}")

    def _for_target(self, original: Callable[..., Any], origin: Origin, args: Any, parameters: dict[str, Any]) -> Any:
        outer, self._here.lowering = self._here.lowering, True
        platform = self.topology.target.platform
        try:
            return super().lowered(original, origin, args, {**parameters, "lowering_platforms": (platform,)})
        except _OnHost:
            raise
        except Exception as error:
            self._not_lowered(Ticket(origin, Asked.of(args, parameters)), parameters["name"], error)
            raise
        finally:
            self._here.lowering = outer

    def _not_lowered(self, ticket: Ticket, name: str, error: Exception) -> None:
        """A lowering that failed would fail on the target too: it is kept, and the script gets its error."""
        name, target = f"jit_{name}", self.topology.target.target
        record = self.session.start_program(name, target)
        failure = Failure("lowering", f"{type(error).__name__}: {error}")
        self.failed(record, describe.not_lowered(ticket, record, target, name, self.topology.devices[:1], failure))

    # -- compiling

    def target_of(self, devices: Iterable[Any]) -> str:
        """The target, for its own devices only."""
        devices = list(devices)
        return self.topology.target.target if self.topology.has(devices[0]) else super().target_of(devices)

    def compile(self, original: Callable[..., Any], computation: Any, **options: Any) -> Any:
        """Compile for the target; a called program that could not be compiled gives zeros all the same."""
        aside = getattr(computation, _ASIDE, None)
        if aside is not None:
            return self._compile_both(original, computation, aside, options)
        ticket = ticket_of(computation)
        try:
            return super().compile(original, computation, **options)
        except CaptureError:
            raise
        except Exception:
            if ticket is None or ticket.record is None or not self._here.calling:
                raise
            computation._executable = _without_executable(computation)
            self.adopt(computation, ticket.record, computation._executable)
            return computation._executable

    def _compile_both(self, original: Callable[..., Any], running: Any, aside: Any, options: dict[str, Any]) -> Any:
        self._here.calling += 1
        try:
            self.compile(original, aside, **options)
        finally:
            self._here.calling -= 1
        ticket = ticket_of(aside)
        try:
            executable = original(running, **options)
        except Exception as error:
            if ticket is not None:
                self._cannot_run(ticket.origin, error)
            running._executable = aside._executable
            return aside._executable
        if ticket is not None and ticket.record is not None:
            super().adopt(running, ticket.record, executable)
        return executable

    def compile_other(
        self, original: Callable[..., Any], computation: Any, ticket: Ticket, options: dict[str, Any]
    ) -> Any:
        """Compile for the CPU what is not the user's program; what touches much memory gives zeros."""
        executable = super().compile_other(original, computation, ticket, options)
        touched = sum(bytes_of(aval) for aval in (*executable.in_avals, *executable.out_avals))
        if touched > LARGEST_REAL and not self.session.spec.run:
            executable._unsafe_call = _zeros(computation, executable.out_avals, executable._out_shardings)
        return executable

    def backend_compile(
        self,
        original: Callable[[], Any],
        backend: Any,
        module: Any,
        devices: Any,
        options: Any,
        callbacks: Any,
        executable_devices: Any,
    ) -> Any:
        """The target's compiler: held to the target's kind of device, and not asked twice for one program."""
        arguments = (original, backend, module, devices, options, callbacks, executable_devices)
        ticket = self.current.ticket
        if self.current.record is None or ticket is None or not self.topology.has(executable_devices[0]):
            return super().backend_compile(*arguments)
        self.topology.check(backend, executable_devices)
        key = (ticket.digest, self.current.record.module, tuple(device.id for device in executable_devices))
        if key not in self._executables:
            self._executables[key] = super().backend_compile(*arguments)
        executable = self._executables[key]
        if len(self._executables) > _MOST_KEPT:
            self._executables.popitem(last=False)
        return executable

    # -- calls

    def _call(self, original: Callable[..., Any], *args: Any, **parameters: Any) -> Any:
        self._here.calling += 1
        try:
            return original(*args, **parameters)
        finally:
            self._here.calling -= 1

    def adopt(self, computation: Any, record: Record, executable: Any) -> None:
        """Zeros in the place of the executable's run, on the fake devices that the script knows."""
        if executable.xla_executable is not None and not self.topology.has(computation._device_list[0]):
            super().adopt(computation, record, executable)
            return
        if isinstance(executable._unsafe_call, ProgramCall):
            return
        executable._in_shardings = [self.topology.to_fake(sharding) for sharding in executable._in_shardings]
        executable._out_shardings = [self.topology.to_fake(sharding) for sharding in executable._out_shardings]
        executable._xla_in_layouts = [None] * len(executable._in_shardings)
        executable._dispatch_in_layouts = [None] * len(executable._in_shardings)
        executable.shard_const_args = list
        zeros = _zeros(computation, executable.out_avals, executable._out_shardings)
        executable._unsafe_call = ProgramCall(self.session, record, executable, Patience(self.session, record, zeros))


def _zeros(computation: Any, avals: list[Any], shardings: list[Any]) -> ZeroCall:
    mutation = computation.compile_args.get("mut")
    mutated = list(mutation.out_mut) if mutation else None
    committed = bool(computation.compile_args["committed"])
    return ZeroCall(list(avals), list(shardings), committed=committed, mutated=mutated)


def _without_executable(computation: Any) -> Any:
    """A MeshExecutable that has outputs but no program."""
    from jax._src.interpreters import pxla

    arguments = computation.compile_args
    ins, outs = output_shardings(computation)
    return pxla.MeshExecutable(
        xla_executable=None,
        build_unsafe_call=None,
        in_avals=arguments["global_in_avals"],
        out_avals=arguments["global_out_avals"],
        in_shardings=ins,
        out_shardings=outs,
        kept_var_idx=arguments["kept_var_idx"],
        xla_in_layouts=[None] * len(ins),
        dispatch_in_layouts=[None] * len(ins),
        xla_out_layouts=[None] * len(outs),
        mut=arguments.get("mut"),
        all_args_info=arguments.get("all_args_info"),
    )
