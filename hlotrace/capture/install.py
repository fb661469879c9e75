"""Puts a session's hooks into a JAX that has been imported, and takes them out again."""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from hlotrace import bundle
from hlotrace.capture.offline import OfflineWatch
from hlotrace.capture.spec import Event
from hlotrace.capture.topology import LOG, Topology
from hlotrace.capture.watch import Watch

if TYPE_CHECKING:
    from hlotrace.capture.session import Session


def install(session: Session) -> Watch:
    """Hear of every compile from now on.

    Raises:
        CaptureError: this JAX lacks what a capture takes hold of.
    """
    _leave_no_frames()
    leave_out_absent_tpu()
    watch = _watch(session)
    watch.install()
    session.describe_backend = backend_if_started
    if session.spec.target is None and session.spec.steps:
        from hlotrace.capture.native import NativeProfile

        session.listeners.append(NativeProfile(session, session.spec.steps, watch.seams))
    return watch


def _watch(session: Session) -> Watch:
    target = session.spec.target
    if target is None:
        return Watch(session)
    start = time.perf_counter()
    session.say(Event("topology", target=target.target))
    topology = Topology(target, session.staging / bundle.LOGS / LOG)
    session.say(Event("topology", target=target.target, seconds=time.perf_counter() - start))
    return OfflineWatch(session, topology)


def backend_if_started() -> tuple[str, str, int] | None:
    """Name, device kind and device count of the default backend; starting one is not ours to do."""
    bridge = sys.modules.get("jax._src.xla_bridge")
    if bridge is None or not bridge.backends_are_initialized():
        return None
    backend = bridge.get_backend()
    devices = backend.devices()
    return str(backend.platform), str(devices[0].device_kind), len(devices)


def leave_out_absent_tpu() -> None:
    """Where no TPU is attached, JAX does not ask libtpu for one.

    It would take seconds, fill stderr with complaints, make the profiler load its plugin, and hold a lock that keeps
    a second capture on this machine from doing the same. `JAX_PLATFORMS` stays the script's own.
    """
    from jax._src import hardware_utils, xla_bridge

    chips, _ = hardware_utils.num_available_tpu_chips_and_device_id()  # type: ignore[no-untyped-call]
    attached = chips or any(Path("/dev").glob("accel*")) or any(Path("/dev/vfio").glob("[0-9]*"))
    known = xla_bridge._backend_factories.get("tpu")
    if known is not None and not attached and not xla_bridge.backends_are_initialized():
        # It stays a known platform: modules of JAX that are imported later register lowerings for it.
        xla_bridge._backend_factories["tpu"] = replace(known, factory=_no_tpu)


def _no_tpu() -> NoReturn:
    raise RuntimeError("no TPU is attached to this machine")


def _leave_no_frames() -> None:
    """JAX leaves our files out of its filtered tracebacks and of the source lines in HLO."""
    from jax._src import source_info_util, traceback_util

    for path in Path(__file__).parent.glob("*.py"):
        traceback_util.register_exclusion(str(path))
        source_info_util.register_exclusion(str(path))
