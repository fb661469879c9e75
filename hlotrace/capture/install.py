"""Puts a session's hooks into a JAX that has been imported, and takes them out again."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from hlotrace import bundle
from hlotrace.capture.offline import OfflineWatch
from hlotrace.capture.spec import Event
from hlotrace.capture.topology import Topology
from hlotrace.capture.watch import Watch

if TYPE_CHECKING:
    from hlotrace.capture.session import Session


def install(session: Session) -> Watch:
    """Hear of every compile from now on.

    Raises:
        CaptureError: this JAX lacks what a capture takes hold of.
    """
    _leave_no_frames()
    watch = _watch(session)
    watch.install()
    session.describe_backend = backend_if_started
    return watch


def _watch(session: Session) -> Watch:
    target = session.spec.target
    if target is None:
        return Watch(session)
    start = time.perf_counter()
    session.say(Event("topology", target=target.target))
    topology = Topology(target, session.staging / bundle.LOGS / "libtpu.log")
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


def _leave_no_frames() -> None:
    """JAX leaves our files out of its filtered tracebacks and of the source lines in HLO."""
    from jax._src import source_info_util, traceback_util

    for path in Path(__file__).parent.glob("*.py"):
        traceback_util.register_exclusion(str(path))
        source_info_util.register_exclusion(str(path))
