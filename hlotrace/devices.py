"""Chips: peaks, memories, clocks, links and memory-space names, every number with its source.

Numbers of the whole chip and of one device are kept apart, since a device of JAX is half a chip on some
generations (v2, v3, 7x, and v4 as compile-only topologies show it) and a whole one on others.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Literal

Basis = Literal["published", "measured", "derived", "guess"]
"""How a number is known: from the maker or its software, by a run, by arithmetic on those, or by inference alone."""

JAX = "jax/_src/tpu_info.py (jax 0.12)"
CLOUD = "Google Cloud TPU documentation"
BOOK = "How To Scale Your Model (jax-ml.github.io/scaling-book)"
COMPILER = "libtpu's out-of-memory message for a compile-only topology"

_GIB = 1 << 30
_MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Sourced:
    """A number with where it is from; `basis` says how far to trust it."""

    value: float
    source: str
    basis: Basis = "published"

    def scaled(self, factor: float) -> Sourced:
        """The same of a part or a multiple, from the same source."""
        return replace(self, value=self.value * factor)


@dataclass(frozen=True)
class Chip:
    """One generation of TPU.

    Attributes:
        name: as targets name it: `v5e`, `tpu7x`.
        device_kinds: what JAX calls its devices, the compiler's own spelling first.
        generation: the number that tiling rules go by.
        cores: TensorCores of a chip.
        devices: JAX devices of a chip, as the compiler's topologies count them.
        flops: peak FLOP/s (integer operations for integer types) of a chip by element type.
        hbm: HBM of a chip in bytes; `hbm_usable` is what the compiler lets one device use.
        hbm_bandwidth: bytes/s of a chip.
        vmem: bytes of a core. cmem: bytes of a chip; None where it has none.
        vmem_bandwidth: bytes/s that a core reads; None where nothing but the clock tells it.
        clock: Hz of a core; None where no source exists.
        mxus: matrix units of a core. mxu_size: rows and columns of each.
        ici_link_bandwidth: bytes/s of a link in one direction. ici_links: links of a chip.
        sparse_cores: of a chip; None where it has none.
    """

    name: str
    device_kinds: tuple[str, ...]
    generation: int
    cores: int
    devices: int
    flops: dict[str, Sourced]
    hbm: Sourced
    hbm_usable: Sourced
    hbm_bandwidth: Sourced
    vmem: Sourced
    mxus: Sourced
    mxu_size: Sourced
    clock: Sourced | None = None
    vmem_bandwidth: Sourced | None = None
    cmem: Sourced | None = None
    sparse_cores: Sourced | None = None
    ici_links: Sourced | None = None
    ici_link_bandwidth: Sourced | None = None
    aliases: tuple[str, ...] = ()
    platform: str = field(default="tpu", init=False)

    @property
    def device_kind(self) -> str:
        """What the compiler calls a device of it."""
        return self.device_kinds[0]

    @property
    def cores_per_device(self) -> int:
        """TensorCores that make up one JAX device."""
        return self.cores // self.devices

    def peak_flops(self, dtype: str) -> Sourced | None:
        """Peak FLOP/s of one device for element type `dtype`; None where no source gives one.

        f32 has no published peak of its own: it runs as several bf16 passes, and how many is the program's choice.
        """
        peak = self.flops.get(_PEAK_OF.get(dtype, dtype))
        return peak.scaled(1 / self.devices) if peak else None

    @property
    def device_hbm(self) -> Sourced:
        """HBM of one device in bytes, physically."""
        return self.hbm.scaled(1 / self.devices)

    @property
    def device_hbm_bandwidth(self) -> Sourced:
        """HBM bytes/s of one device."""
        return self.hbm_bandwidth.scaled(1 / self.devices)

    @property
    def device_vmem(self) -> Sourced:
        """VMEM of one device in bytes."""
        return self.vmem.scaled(self.cores_per_device)

    @property
    def device_vmem_bandwidth(self) -> Sourced | None:
        """Bytes/s that one device reads from VMEM; None where not even the clock is known."""
        known = self.vmem_bandwidth
        if known is None and self.clock is not None:
            known = Sourced(self.clock.value * _VECTOR_LOADS, _VECTOR_LOADS_SOURCE, "guess")
        return known.scaled(self.cores_per_device) if known else None

    def with_devices(self, devices: int) -> Chip:
        """The chip run as `devices` devices: a v4 host usually joins both cores into one (megacore)."""
        return replace(self, devices=devices, hbm_usable=self.hbm_usable.scaled(self.devices / devices))


_PEAK_OF = {
    "f16": "bf16",
    "u8": "s8",
    "u4": "s4",
    "f8e4m3fn": "f8",
    "f8e4m3": "f8",
    "f8e5m2": "f8",
    "f8e4m3b11fnuz": "f8",
}
"""Element types that share another's peak."""


_VECTOR_LOADS = 3 * 8 * 128 * 4
_VECTOR_LOADS_SOURCE = "clock x 3 vector loads of 8x128 words a cycle, as v5e's compiler schedules them"


def _usable(gib: float) -> Sourced:
    return Sourced(round(gib * _GIB), COMPILER, "measured")


def _clock(hertz: float, basis: Basis, source: str) -> Sourced:
    return Sourced(hertz, source, basis)


_PEAK_FORMULA = "peak bf16 FLOP/s / (2 x MXU rows x MXU columns x MXUs)"
_TORUS_3D = f"{CLOUD}: a 3D torus, two links a dimension"
_TORUS_2D = f"{CLOUD}: a 2D torus, two links a dimension"
_DOUBLED_MXU = f"{_PEAK_FORMULA}, each MXU counted twice"

CHIPS: tuple[Chip, ...] = (
    Chip(
        "v2",
        ("TPU v2",),
        generation=2,
        cores=2,
        devices=2,
        flops={"bf16": Sourced(46e12, JAX)},
        hbm=Sourced(16 * _GIB, JAX),
        hbm_usable=_usable(7.48),
        hbm_bandwidth=Sourced(716e9, JAX),
        vmem=Sourced(16 * _MIB, JAX),
        mxus=Sourced(1, JAX),
        mxu_size=Sourced(128, JAX),
        clock=_clock(0.70e9, "derived", _PEAK_FORMULA),
    ),
    Chip(
        "v3",
        ("TPU v3",),
        generation=3,
        cores=2,
        devices=2,
        flops={"bf16": Sourced(123e12, CLOUD)},
        hbm=Sourced(32 * _GIB, CLOUD),
        hbm_usable=_usable(15.48),
        hbm_bandwidth=Sourced(900e9, CLOUD),
        vmem=Sourced(16 * _MIB, JAX),
        mxus=Sourced(2, CLOUD),
        mxu_size=Sourced(128, CLOUD),
        clock=_clock(0.94e9, "derived", _PEAK_FORMULA),
        ici_link_bandwidth=Sourced(100e9, BOOK),
    ),
    Chip(
        "v4",
        ("TPU v4",),
        generation=4,
        cores=2,
        devices=2,
        flops={"bf16": Sourced(275e12, CLOUD), "s8": Sourced(275e12, CLOUD)},
        hbm=Sourced(32 * _GIB, CLOUD),
        hbm_usable=_usable(15.25),
        hbm_bandwidth=Sourced(1200e9, CLOUD),
        vmem=Sourced(16 * _MIB, JAX),
        cmem=Sourced(134e6, JAX),
        mxus=Sourced(4, JAX),
        mxu_size=Sourced(128, JAX),
        clock=_clock(1.05e9, "derived", _PEAK_FORMULA),
        ici_links=Sourced(6, _TORUS_3D),
        ici_link_bandwidth=Sourced(45e9, BOOK),
    ),
    Chip(
        "v5e",
        ("TPU v5 lite", "TPU v5e"),
        generation=5,
        cores=1,
        devices=1,
        flops={"bf16": Sourced(197e12, CLOUD), "s8": Sourced(393e12, CLOUD), "s4": Sourced(788e12, JAX)},
        hbm=Sourced(16 * _GIB, CLOUD),
        hbm_usable=_usable(15.75),
        hbm_bandwidth=Sourced(819e9, CLOUD),
        vmem=Sourced(128 * _MIB, JAX),
        mxus=Sourced(4, JAX),
        mxu_size=Sourced(128, JAX),
        clock=_clock(1.5e9, "published", BOOK),
        ici_links=Sourced(4, _TORUS_2D),
        ici_link_bandwidth=Sourced(45e9, BOOK),
        aliases=("v5litepod", "v5lite"),
    ),
    Chip(
        "v5p",
        ("TPU v5", "TPU v5p"),
        generation=5,
        cores=2,
        devices=1,
        flops={"bf16": Sourced(459e12, CLOUD), "s8": Sourced(918e12, JAX), "s4": Sourced(1.84e15, JAX)},
        hbm=Sourced(96 * _GIB, JAX),
        hbm_usable=_usable(95.73),
        hbm_bandwidth=Sourced(2765e9, CLOUD),
        vmem=Sourced(64 * _MIB, JAX),
        mxus=Sourced(4, JAX),
        mxu_size=Sourced(128, JAX),
        clock=_clock(1.75e9, "derived", _PEAK_FORMULA),
        sparse_cores=Sourced(4, JAX),
        ici_links=Sourced(6, _TORUS_3D),
        ici_link_bandwidth=Sourced(90e9, BOOK),
    ),
    Chip(
        "v6e",
        ("TPU v6 lite", "TPU v6e"),
        generation=6,
        cores=1,
        devices=1,
        flops={
            "bf16": Sourced(918e12, CLOUD),
            "s8": Sourced(1836e12, CLOUD),
            "f8": Sourced(920e12, JAX),
            "s4": Sourced(3.68e15, JAX),
        },
        hbm=Sourced(32 * _GIB, CLOUD),
        hbm_usable=_usable(31.24),
        hbm_bandwidth=Sourced(1638e9, CLOUD),
        vmem=Sourced(128 * _MIB, JAX),
        mxus=Sourced(2, JAX),
        mxu_size=Sourced(256, JAX),
        clock=_clock(1.75e9, "guess", _DOUBLED_MXU),
        vmem_bandwidth=Sourced(23296e9, "peak_vmem_rd_bw of a v6e device plane in a profiler's trace", "measured"),
        sparse_cores=Sourced(2, JAX),
        ici_links=Sourced(4, _TORUS_2D),
        ici_link_bandwidth=Sourced(90e9, BOOK),
        aliases=("v6lite", "trillium"),
    ),
    Chip(
        "tpu7x",
        ("TPU7x", "TPU 7x"),
        generation=7,
        cores=2,
        devices=2,
        flops={"bf16": Sourced(2307e12, CLOUD), "f8": Sourced(4614e12, CLOUD)},
        hbm=Sourced(192 * _GIB, CLOUD),
        hbm_usable=_usable(94.74),
        hbm_bandwidth=Sourced(7380e9, CLOUD),
        vmem=Sourced(64 * _MIB, JAX),
        mxus=Sourced(2, JAX),
        mxu_size=Sourced(256, JAX),
        clock=_clock(2.2e9, "guess", _DOUBLED_MXU),
        sparse_cores=Sourced(4, CLOUD),
        ici_links=Sourced(6, _TORUS_3D),
        ici_link_bandwidth=Sourced(100e9, f"{CLOUD}: 1200 GB/s both ways over all links", "derived"),
        aliases=("v7x", "7x", "ironwood"),
    ),
)

_BY_NAME = {name: chip for chip in CHIPS for name in (chip.name, *chip.aliases)}
_BY_KIND = {kind.lower(): chip for chip in CHIPS for kind in chip.device_kinds}
_SLICES = re.compile(r"\d+x(?=[a-z])")


def chip_by_name(name: str) -> Chip | None:
    """The chip named `v5e`, `tpu7x`, … or by another name people use (`v5litepod`); None when unknown."""
    return _BY_NAME.get(name.lower())


def chip_by_device_kind(device_kind: str | None) -> Chip | None:
    """The chip of a JAX `device_kind` such as `TPU v5 lite`; None when unknown."""
    return _BY_KIND.get(device_kind.lower()) if device_kind else None


def chip_by_target(target: str | None) -> Chip | None:
    """The chip of a target such as `v5e:2x2`, `2xv6e:4x4` (two slices) or a bare `v5e`; None when it names none."""
    if not target:
        return None
    chip = chip_by_name(_SLICES.sub("", target.lower(), count=1).partition(":")[0])
    return chip.with_devices(1) if chip and target.endswith(":megacore") else chip


def chip_of(target: str | None, device_kind: str | None) -> Chip | None:
    """The chip that a module was compiled for; None when neither its target nor its device kind names one.

    The target is asked first: it alone says whether a v4 joins its cores into one device.
    """
    return chip_by_target(target) or chip_by_device_kind(device_kind)


MEMORY_SPACES: dict[str, dict[int, str]] = {
    "tpu": {
        0: "HBM",
        1: "VMEM",
        2: "sync flags",
        3: "CMEM",
        4: "SMEM",
        5: "host memory",
        6: "scalar memory",
        8: "SparseCore sync flags",
    },
    "cpu": {0: "host memory"},
    "gpu": {0: "device memory", 5: "host memory"},
}
"""What XLA's memory space numbers mean, as far as it is known; see `memory_space_name`."""


def memory_space_name(platform: str, space: int) -> str:
    """The name of memory space `space` on `platform` (`tpu`, `cpu`, `gpu`); `S(n)` where it is not known."""
    return MEMORY_SPACES.get(platform, {}).get(space, f"S({space})")
