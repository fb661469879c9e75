"""Target words to TPU topologies: `v5e:4x4`, `v5e`, `v5litepod-16`, `v5p-128`, `2xv6e:4x4`.

Which topologies exist is a rule here, not a list. A slice is built of hosts with 2x2 chips, so that the first two sides
are even; a topology may also be a part of one host. Slices of the three-dimensional generations are built, from 64
chips up, of cubes with 4x4x4, joined to a torus; the two-dimensional ones wrap around where a side spans the pod.
libtpu 0.0.42 and 0.0.50 accept what the rule accepts. They accept more (slices larger than any pod), and they leave out
the wrap-around and v4's megacore unless told.
"""

from __future__ import annotations

import itertools
import math
import re
from dataclasses import dataclass, replace
from typing import NoReturn

from hlotrace import bundle
from hlotrace.capture.spec import TargetSpec
from hlotrace.devices import CHIPS, Chip, chip_by_name
from hlotrace.errors import CaptureError, unknown_name

_MEGACORE = "megacore"
_HOST = (2, 2, 1)
_WORD = re.compile(
    r"(?:(?P<slices>\d+)x(?=[a-z]))?(?:tpu[- ]?(?=v\d))?(?P<chip>[a-z0-9]*[a-z][a-z0-9]*)"
    r"(?:[:-](?P<sides>\d+(?:x\d+)+)|-(?P<count>\d+))?(?P<megacore>:megacore)?"
)


@dataclass(frozen=True)
class _Pod:
    """How slices of a generation are built.

    Attributes:
        dimensions: 2 or 3.
        chips: of the largest slice there is (Google Cloud TPU documentation).
        wraps_at: a side of so many chips is a ring: the pod's side, or a multiple of a cube's in three dimensions.
    """

    dimensions: int
    chips: int
    wraps_at: int

    def wrap(self, sides: tuple[int, ...]) -> list[bool]:
        """Which sides close to a ring, always three of them."""
        if self.dimensions == 3:
            return [all(side % self.wraps_at == 0 for side in sides)] * 3
        return [side == self.wraps_at for side in sides] + [False]


_PODS = {
    "v2": _Pod(2, 256, 16),
    "v3": _Pod(2, 1024, 32),
    "v4": _Pod(3, 4096, 4),
    "v5e": _Pod(2, 256, 16),
    "v5p": _Pod(3, 8960, 4),
    "v6e": _Pod(2, 256, 16),
    "tpu7x": _Pod(3, 9216, 4),
}


@dataclass(frozen=True)
class Choice:
    """What was chosen for a target word.

    Attributes:
        spec: what the child compiles for.
        reason: a sentence that says what was chosen, and why.
        grows: a bare generation: `for_devices` gives a larger one when the program needs more devices.
    """

    spec: TargetSpec
    reason: str
    grows: bool = False

    def as_bundle_target(self) -> bundle.Target:
        """The manifest's record of it."""
        spec = self.spec
        return bundle.Target(
            spec.requested, spec.target, spec.platform, spec.device_kind, spec.device_count, reason=self.reason
        )


def choose(word: str) -> Choice:
    """The topology that a target word means.

    Raises:
        CaptureError: no such generation, or no such slice of it; the remedy names what there is.
    """
    match = _WORD.fullmatch(word.strip().lower())
    chip = chip_by_name(match["chip"]) if match else None
    if match is None or chip is None or chip.name not in _PODS:
        raise _unknown(word)
    slices = int(match["slices"] or 1)
    if slices < 1:
        raise CaptureError("a target has at least one slice", place=f"target {word}")
    megacore = bool(match["megacore"])
    if megacore and chip.name != "v4":
        raise CaptureError(
            "only v4 is compiled with or without megacore", place=f"target {word}", remedy="Leave :megacore out."
        )
    if match["count"]:
        return _of_cloud_name(word, chip, int(match["count"]), slices)
    if match["sides"]:
        sides = tuple(int(side) for side in match["sides"].split("x"))
        return _of_sides(word, chip, _checked(word, chip, sides), slices, megacore=megacore)
    host = _HOST[: _PODS[chip.name].dimensions]
    chosen = _of_sides(word, chip, host, slices, megacore=megacore)
    reason = f"{chosen.reason}; the smallest that holds a program for up to {chosen.spec.device_count} devices"
    return replace(chosen, reason=reason, grows=True)


def for_devices(choice: Choice, devices: int) -> Choice:
    """The smallest topology of a bare generation that has at least `devices` devices.

    Raises:
        CaptureError: no slice of the generation is so large.
    """
    spec = choice.spec
    if devices <= spec.device_count:
        return choice
    chip = _running_as(_known_chip(spec), megacore=_is_megacore(spec))
    chips = math.ceil(devices / chip.devices / spec.num_slices)
    sides = next((s for n in range(chips, _PODS[chip.name].chips + 1) if (s := _balanced(chip, n))), None)
    if sides is None:
        raise CaptureError(
            f"the program needs {devices} devices, and the largest {chip.name} slice has "
            f"{_PODS[chip.name].chips * chip.devices}",
            place=f"target {spec.requested}",
            remedy=f"Ask for several slices: 2x{spec.requested}.",
        )
    grown = _of_sides(spec.requested, chip, sides, spec.num_slices, megacore=_is_megacore(spec))
    reason = f"{grown.reason}; the smallest that holds the {devices} devices the program asks for"
    return replace(grown, reason=reason, grows=True)


def known_words() -> list[str]:
    """A few words of every generation: the bare name, a topology, a cloud name."""
    words = []
    for chip in CHIPS:
        host = "x".join(str(side) for side in _HOST[: _PODS[chip.name].dimensions])
        words += [chip.name, f"{chip.name}:{host}", f"{chip.name}-{4 * _counted(chip)}"]
    return words


def _of_cloud_name(word: str, chip: Chip, count: int, slices: int) -> Choice:
    """`v5e-16` counts chips, `v5p-128` TensorCores; a v4 host joins the two cores of a chip (megacore)."""
    chips, rest = divmod(count, _counted(chip))
    unit = "TensorCore" if _counted(chip) > 1 else "chip"
    sides = _balanced(chip, chips) if not rest and chips <= _PODS[chip.name].chips else None
    if sides is None:
        _no_such_size(word, chip, chips, _plural(count, unit))
    megacore = chip.name == "v4"
    chosen = _of_sides(word, chip, sides, slices, megacore=megacore)
    return replace(chosen, reason=f"{word} is counted in {unit}s: {chosen.reason}")


def _of_sides(word: str, chip: Chip, sides: tuple[int, ...], slices: int, *, megacore: bool) -> Choice:
    pod, chips = _PODS[chip.name], math.prod(sides)
    chip = _running_as(chip, megacore=megacore)
    topology = f"{chip.name}:{'x'.join(map(str, sides))}"
    options: dict[str, object] = {}
    if any(pod.wrap(sides)):
        options["wrap"] = pod.wrap(sides)
    if chips < math.prod(_HOST):
        options["chips_per_host_bounds"] = [*sides, *[1] * (3 - len(sides))]
    if megacore:
        options["chip_config_name"] = _MEGACORE
    target = f"{slices}x{topology}" if slices > 1 else topology
    spec = TargetSpec(
        requested=word,
        target=f"{target}:{_MEGACORE}" if megacore else target,
        topology_name=topology,
        device_kind=chip.device_kind,
        device_count=slices * chips * chip.devices,
        num_slices=slices,
        topology_options=options,
    )
    return Choice(spec, _description(spec, chip, chips))


def _description(spec: TargetSpec, chip: Chip, chips: int) -> str:
    parts = [f"{_plural(spec.num_slices, 'slice')} of {_plural(chips, 'chip')}"] if spec.num_slices > 1 else []
    parts += [] if parts else [_plural(chips, "chip")]
    parts.append(f"{_plural(spec.device_count, 'device')} of kind {spec.device_kind}")
    if "wrap" in spec.topology_options:
        rings = [name for name, ring in zip("xyz", spec.topology_options["wrap"], strict=True) if ring]
        parts.append(f"wrapping around in {', '.join(rings)}")
    if chip.name == "v4":
        parts.append("a device is a whole chip (megacore)" if chip.devices == 1 else "a device is one core of a chip")
    return f"{spec.target} has {', '.join(parts)}"


def _checked(word: str, chip: Chip, sides: tuple[int, ...]) -> tuple[int, ...]:
    """`sides` with as many dimensions as the generation has, if such a slice exists."""
    pod = _PODS[chip.name]
    if pod.dimensions == 3 and len(sides) == 2:
        sides = (*sides, 1)
    if pod.dimensions == 2 and len(sides) == 3 and sides[2] == 1:
        sides = sides[:2]
    place = f"target {word}"
    example = f"{chip.name}:{'x'.join(map(str, _HOST[: pod.dimensions]))}"
    if len(sides) != pod.dimensions:
        raise CaptureError(f"a {chip.name} topology has {pod.dimensions} sides, as {example} has", place=place)
    in_one_host = all(1 <= side <= most for side, most in zip(sides, _HOST, strict=False))
    if not in_one_host and (min(sides) < 1 or sides[0] % 2 or sides[1] % 2):
        near = tuple(max(2, side + side % 2) if i < 2 else max(1, side) for i, side in enumerate(sides))
        raise CaptureError(
            "the first two sides are even, since a host has 2x2 chips (or the whole is a part of one host)",
            place=place,
            remedy=f"Near it: {chip.name}:{'x'.join(map(str, near))}.",
        )
    if math.prod(sides) > pod.chips:
        raise CaptureError(
            f"the largest {chip.name} slice has {pod.chips} chips, this has {math.prod(sides)}",
            place=place,
            remedy=f"Ask for several slices, such as 2x{chip.name}-{pod.chips * _counted(chip)}.",
        )
    return sides


def _balanced(chip: Chip, chips: int) -> tuple[int, ...] | None:
    """The sides, smallest first, of the slice with so many chips that is offered; None when there is none.

    Offered are one chip, one host, powers of two, and in three dimensions everything made of cubes with 4x4x4; of
    several shapes of one size, the most even one.
    """
    dimensions = _PODS[chip.name].dimensions
    if chips == 1:
        return (1,) * dimensions
    if chips == math.prod(_HOST):
        return _HOST[:dimensions]
    of_cubes = dimensions == 3 and chips % 64 == 0
    if chips < math.prod(_HOST) or not (of_cubes or chips.bit_count() == 1):
        return None
    unit = 4 if of_cubes else 2
    heads = itertools.combinations_with_replacement(range(unit, math.isqrt(chips) + 1, unit), dimensions - 1)
    shapes = [(*head, chips // math.prod(head)) for head in heads if chips % math.prod(head) == 0]
    fitting = [sides for sides in shapes if sides[-1] >= sides[-2] and sides[-1] % unit == 0]
    return min(fitting, key=lambda sides: (sum(sides), sides), default=None)


def _no_such_size(word: str, chip: Chip, chips: int, counted: str) -> NoReturn:
    largest = _PODS[chip.name].chips
    below = next((n for n in range(min(chips, largest), 0, -1) if _balanced(chip, n)), None)
    above = next((n for n in range(chips + 1, largest + 1) if _balanced(chip, n)), None)
    near = [f"{chip.name}-{n * _counted(chip)}" for n in (below, above) if n]
    raise CaptureError(
        f"no {chip.name} slice has {counted}", place=f"target {word}", remedy=f"Near it: {', '.join(near)}."
    )


def _unknown(word: str) -> CaptureError:
    error = unknown_name("target", word, known_words())
    return CaptureError(error.what, remedy=error.remedy)


def _counted(chip: Chip) -> int:
    """What a cloud name counts for a chip: TensorCores where it has two of them."""
    return chip.cores


def _running_as(chip: Chip, *, megacore: bool) -> Chip:
    return chip.with_devices(1) if megacore else chip


def _is_megacore(spec: TargetSpec) -> bool:
    return spec.topology_options.get("chip_config_name") == _MEGACORE


def _known_chip(spec: TargetSpec) -> Chip:
    chip = chip_by_name(spec.topology_name.partition(":")[0])
    assert chip is not None, spec
    return chip


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
