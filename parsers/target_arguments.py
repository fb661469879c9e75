"""The `target_arguments.txt` side file: for which TPU topology libtpu compiled.

A text proto with a `tpu_topology_args` for the slice, or one for each of several slices:

    tpu_topology_args { version: TPU_VERSION_VIPERFISH variant: "lite" chips_per_host_bounds { x: 2 y: 2 z: 1 } … }

The names of versions were found by compiling for each generation with libtpu 0.0.42 and 0.0.50.
"""

from __future__ import annotations

import re

_CHIPS = {
    ("JELLYFISH", ""): "v2",
    ("DRAGONFISH", ""): "v3",
    ("PUFFERFISH", ""): "v4",
    ("VIPERFISH", "lite"): "v5e",
    ("VIPERFISH", ""): "v5p",
    ("GHOSTLITE", ""): "v6e",
    ("6acc60406", ""): "tpu7x",
}
_FLAT = ("v2", "v3", "v5e", "v6e")
"""Generations whose topologies have two dimensions."""

_VERSION = re.compile(r"\bversion:\s*TPU_VERSION_(\w+)")
_VARIANT = re.compile(r'\bvariant:\s*"(\w*)"')
_BOUNDS = re.compile(r"\b(chips_per_host|host)_bounds\s*\{\s*x:\s*(\d+)\s*y:\s*(\d+)\s*z:\s*(\d+)")
_MEGACORE = re.compile(r'\bchip_config_name:\s*"megacore')


def read_target(text: str) -> str | None:
    """The target as captures name it, such as `v5e:2x2` or `2xv6e:4x4`; None for a version that is not known."""
    version, variant = _VERSION.search(text), _VARIANT.search(text)
    if version is None:
        return None
    chip = _CHIPS.get((version[1], variant[1] if variant else ""))
    bounds = {match[1]: [int(size) for size in match.groups()[1:]] for match in _BOUNDS.finditer(text)}
    if chip is None or len(bounds) != 2:
        return None
    sizes = [chips * hosts for chips, hosts in zip(bounds["chips_per_host"], bounds["host"], strict=True)]
    shape = "x".join(map(str, sizes[:2] if chip in _FLAT else sizes))
    slices = text.count("slice_info")
    several = f"{slices}x" if slices > 1 else ""
    return f"{several}{chip}:{shape}{':megacore' if _MEGACORE.search(text) else ''}"
