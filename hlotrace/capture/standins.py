"""What a script sees while its fake CPU devices stand in for a target's.

They are a backend of their own, the default one: device i stands for the topology's device i. The host's CPU is there
beside it, as `jax.devices("cpu")`, and what a script puts there stays there. `jax.make_mesh` and `create_device_mesh`
order devices as they would order the real ones. A script that asks for the platform (`jax.default_backend()`,
`device.platform`) or the device (`device.device_kind`, `coords`, `memory_stats()`) is told the target's; JAX itself,
which has to run what is small on the CPU, goes on seeing the truth.
"""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from hlotrace.capture.seams import Seams
    from hlotrace.capture.session import Session
    from hlotrace.capture.topology import Topology

_CLASSES = "jaxlib._jax"
_TOLD_IN_JAX = ("jax.experimental.pallas", "jax._src.pallas", "jax._src.tpu_info", "jax._src.mesh")
"""Parts of JAX that choose a kernel by the chip, and meshes, which carry its name: told what a script is told."""


def install(seams: Seams, topology: Topology, session: Session) -> None:
    """Let this process's CPU devices look like the target's."""
    _keep_to_stand_ins(seams, topology.target.platform)
    _order_meshes(seams, topology)
    _tell_target(seams, topology)
    _single_process(seams, session)


# -- backends


def _keep_to_stand_ins(seams: Seams, platform: str) -> None:
    """A script's own choice of platform would look for hardware that is not here."""
    import jax
    from jax._src import xla_bridge

    bridge = "jax._src.xla_bridge"
    config: Any = jax.config
    started: Any = xla_bridge.backends_are_initialized
    wanted = f"{platform},cpu"

    def backends(original: Any) -> Any:
        def with_stand_ins() -> Any:
            if not started() and config.jax_platforms != wanted:
                config.update("jax_platforms", wanted)
            return original()

        return with_stand_ins

    def get_backend(original: Any) -> Any:
        if started():  # in a live process what is there stands in
            return lambda name=None: original("cpu" if name == platform else name)
        return lambda name=None: original(name or platform)

    seams.replace(bridge, "backends", backends)
    seams.replace(bridge, "_get_backend_uncached", get_backend)


def _single_process(seams: Seams, session: Session) -> None:
    """A script for many hosts starts JAX's distributed service; one process stands for all of them here."""

    def initialize(*_args: Any, **_kwargs: Any) -> None:
        session.note("jax.distributed.initialize was skipped: one process stands for all hosts of the target")

    for module in ("jax._src.distributed", "jax.distributed"):
        seams.replace(module, "initialize", lambda _original: initialize, optional=True)


# -- meshes


def _order_meshes(seams: Seams, topology: Topology) -> None:
    for module in ("jax._src.sharding_impls", "jax"):
        seams.replace(module, "make_mesh", functools.partial(_make_mesh, topology))
    for module in ("jax._src.mesh_utils", "jax.experimental.mesh_utils"):
        for name, position in (("create_device_mesh", 1), ("create_hybrid_device_mesh", 2)):
            seams.replace(module, name, functools.partial(_device_mesh, topology, position))


def _make_mesh(topology: Topology, original: Any) -> Any:
    def make_mesh(*args: Any, devices: Any = None, **kwargs: Any) -> Any:
        import jax

        given = list(jax.devices() if devices is None else devices)
        if not topology.is_stand_in(given[0]):
            return original(*args, devices=given, **kwargs)
        mesh = original(*args, devices=list(topology.real_array(given)), **kwargs)
        return topology.fake_mesh(mesh)

    return make_mesh


def _device_mesh(topology: Topology, position: int, original: Any) -> Any:
    """`position` is that of the parameter `devices`."""

    def create(*args: Any, **kwargs: Any) -> Any:
        import jax

        devices = args[position] if len(args) > position else kwargs.pop("devices", None)
        given = list(jax.devices() if devices is None else devices)
        if not topology.is_stand_in(given[0]):
            return original(*args[:position], given, *args[position + 1 :], **kwargs)
        real = list(topology.real_array(given))
        return topology.fake_array(original(*args[:position], real, *args[position + 1 :], **kwargs))

    return create


# -- the platform and the devices


def _tell_target(seams: Seams, topology: Topology) -> None:
    seams.replace("jax", "default_backend", lambda _original: lambda: topology.target.platform)
    seams.replace(_CLASSES, "Client.platform", _told("platform", functools.partial(_of_client, topology)))
    for name in ("platform", "device_kind", "coords", "core_on_chip", "slice_index", "num_cores"):
        answer = functools.partial(_of_device, topology, name)
        seams.replace(_CLASSES, f"Device.{name}", _told(name, answer), create=True)
    seams.replace(_CLASSES, "Device.memory_stats", functools.partial(_memory_stats, topology))


def _of_client(topology: Topology, client: Any) -> str | None:
    return topology.target.platform if client is topology.stand_in_client() else None


def _of_device(topology: Topology, name: str, device: Any) -> Any:
    real = topology.behind(device)
    return None if real is None else getattr(real, name)


def _told(name: str, answer: Callable[[Any], Any]) -> Callable[[Any], property]:
    """A property that gives scripts the answer, unless it is None, and JAX the truth."""

    def wrap(original: Any) -> property:
        def get(self: Any) -> Any:
            told = answer(self) if _caller_is_told() else None
            if told is not None:
                return told
            return original.__get__(self, type(self)) if original is not None else type(self).__getattr__(self, name)

        return property(get)

    return wrap


def _memory_stats(topology: Topology, original: Any) -> Any:
    """A device whose usable HBM is known tells it as its limit, with nothing in use."""

    def memory_stats(self: Any) -> Any:
        from hlotrace.devices import chip_by_name

        chip = chip_by_name(topology.target.topology_name.partition(":")[0])
        if chip is None or topology.behind(self) is None or not _caller_is_told():
            return original(self)
        limit = int(chip.hbm_usable.value)
        return {"bytes_limit": limit, "bytes_in_use": 0, "peak_bytes_in_use": 0, "num_allocs": 0}

    return memory_stats


def _caller_is_told() -> bool:
    """Whether the code that asks, two frames up, is not JAX's own machinery nor ours."""
    name = sys._getframe(2).f_globals.get("__name__", "")
    if name.startswith(_TOLD_IN_JAX):
        return True
    return name.partition(".")[0] not in ("jax", "jaxlib", "hlotrace")
