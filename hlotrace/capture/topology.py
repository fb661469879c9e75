"""A TPU topology without hardware, and how this machine's fake CPU devices stand in for its devices."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from typing import TYPE_CHECKING, Any

from hlotrace.errors import CaptureError, MissingDependency

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from hlotrace.capture.spec import TargetSpec

LOG = "libtpu.log"
_LOGS = "libtpu"
_ENVIRONMENT = {
    "JAX_PLATFORMS": "cpu",
    "TPU_SKIP_MDS_QUERY": "1",
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
}
"""Without the last, a second process on the machine dies on libtpu's lock file."""


def prepare_environment(logs: Path) -> None:
    """Set what a compile-only process needs, before JAX is imported."""
    os.environ.update(_ENVIRONMENT)
    os.environ.setdefault("TPU_LOG_DIR", str(logs / _LOGS))


def collect_logs(logs: Path) -> None:
    """Join libtpu's own log files to `libtpu.log`."""
    folder = logs / _LOGS
    if not folder.is_dir():
        return
    with (logs / LOG).open("ab") as log:
        for path in sorted(folder.iterdir()):
            if path.is_file() and not path.is_symlink():
                log.write(path.read_bytes())
    shutil.rmtree(folder, ignore_errors=True)


class Topology:
    """The devices of a target; fake CPU device i stands in for its device i."""

    def __init__(self, target: TargetSpec, log: Path) -> None:
        self.target = target
        self.devices: list[Any] = _devices(target, log)
        kinds = sorted({str(device.device_kind) for device in self.devices})
        if kinds != [target.device_kind] or len(self.devices) != target.device_count:
            raise CaptureError(
                f"expected {target.device_count} devices of kind {target.device_kind}, and libtpu gives "
                f"{len(self.devices)} of kind {', '.join(kinds)}",
                place=f"target {target.requested}",
            )
        self._real = frozenset(self.devices)
        self._compile_only = type(self.devices[0].client)

    def has(self, device: Any) -> bool:
        """Whether a device is one of the topology's."""
        return device in self._real

    def is_described(self, device: Any) -> bool:
        """Whether a device is of a topology without hardware, this one or a script's own."""
        return isinstance(device.client, self._compile_only)

    def check(self, client: Any, devices: Any) -> None:
        """Hold a compile to the target.

        Raises:
            CaptureError: the compiler, or a device it compiles for, is of another kind.
        """
        kinds = {str(device.device_kind) for device in devices}
        if kinds != {self.target.device_kind} or self.target.device_kind not in str(client.platform_version):
            raise CaptureError(
                f"expected to compile for {self.target.device_kind}, found {', '.join(sorted(kinds))} "
                f"({str(client.platform_version).splitlines()[0]})",
                place=f"target {self.target.requested}",
            )

    def of_fake(self, devices: Sequence[Any]) -> tuple[Any, ...]:
        """The topology's devices for fake ones; its own stay as they are.

        Raises:
            CaptureError: a fake device that the topology has none for.
        """
        return tuple(device if device in self._real else self._one(device) for device in devices)

    def stand_in_client(self) -> Any:
        """The backend whose devices stand in for the topology's: the default one."""
        import jax

        return jax.devices()[0].client

    def is_stand_in(self, device: Any) -> bool:
        """Whether a device is of that backend, and not the host's CPU nor one of a topology."""
        return not self.is_described(device) and device.client is self.stand_in_client()

    def behind(self, device: Any) -> Any:
        """The topology's device that one of this process stands for; None for all others."""
        if not self.is_stand_in(device) or device.id >= len(self.devices):
            return None
        return self.devices[device.id]

    def _one(self, fake: Any) -> Any:
        real = self.behind(fake)
        if real is not None:
            return real
        raise CaptureError(
            f"the program uses device {fake.id} of platform {fake.platform}, which {self.target.target} does not have",
            place=f"target {self.target.requested}",
            remedy="Choose a larger topology.",
        )

    def to_fake(self, sharding: Any) -> Any:
        """The same sharding over the fake devices."""
        from jax._src import sharding_impls
        from jax.sharding import Mesh, NamedSharding

        if isinstance(sharding, NamedSharding):
            mesh = sharding.mesh
            if not isinstance(mesh, Mesh) or mesh.empty or mesh.devices.flat[0] not in self._real:
                return sharding
            return sharding.update(mesh=self.fake_mesh(mesh))
        if isinstance(sharding, sharding_impls.GSPMDSharding):
            fake_list = tuple(self.fake_array(sharding._device_assignment))
            return sharding_impls.GSPMDSharding(fake_list, sharding._hlo_sharding, memory_kind=sharding.memory_kind)
        if getattr(sharding, "num_devices", 0) == 1:
            device = next(iter(sharding.device_set))
            if device in self._real:
                (fake_one,) = self.fake_array([device])
                return sharding_impls.SingleDeviceSharding(fake_one, memory_kind=sharding.memory_kind)
        return sharding

    def fake_mesh(self, mesh: Any) -> Any:
        """The same mesh over the fake devices."""
        from jax.sharding import Mesh

        return Mesh(self.fake_array(mesh.devices), mesh.axis_names, axis_types=mesh.axis_types)

    def fake_array(self, devices: Any) -> Any:
        """An array of fake devices in the shape of an array of the topology's."""
        import jax
        import numpy as np

        index = dict(zip(self.devices, jax.devices(), strict=False))
        given = np.asarray(devices, dtype=object)
        result = np.empty(given.shape, dtype=object)
        result.flat[:] = [index.get(device, device) for device in given.flat]
        return result

    def real_array(self, devices: Any) -> Any:
        """An array of the topology's devices in the shape of an array of fake ones."""
        import numpy as np

        given = np.asarray(devices, dtype=object)
        result = np.empty(given.shape, dtype=object)
        result.flat[:] = self.of_fake(list(given.flat))
        return result


def _devices(target: TargetSpec, log: Path) -> list[Any]:
    from jax.experimental import topologies

    options = {
        key: tuple(value) if isinstance(value, list) else value for key, value in target.topology_options.items()
    }
    if target.num_slices > 1:
        options["num_slices"] = target.num_slices
    try:
        with stderr_to(log):
            description = topologies.get_topology_desc(
                platform=target.platform, topology_name=target.topology_name, **options
            )
    except (RuntimeError, NotImplementedError) as error:
        if "not installed" in str(error) or "libtpu" in str(error):
            raise MissingDependency(
                "expected libtpu, the TPU compiler, beside jax in this environment",
                place=sys.executable,
                remedy=f"Install it: {sys.executable} -m pip install libtpu (or jax[tpu]).",
            ) from None
        raise CaptureError(
            f"libtpu refuses the topology: {str(error).splitlines()[0]}", place=f"target {target.requested}"
        ) from None
    return list(description.devices)


@contextlib.contextmanager
def stderr_to(log: Path) -> Iterator[None]:
    """Everything written to file descriptor 2 meanwhile, by C++ too, is appended to a log."""
    log.parent.mkdir(parents=True, exist_ok=True)
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        with log.open("ab") as file:
            os.dup2(file.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
