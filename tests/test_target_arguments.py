"""Which TPU a dump was compiled for."""

from __future__ import annotations

from pathlib import Path

import pytest

from hlotrace.parsers.target_arguments import read_target

V5E = next((Path(__file__).parent / "data" / "scan-v5e").glob("*target_arguments.txt"))


def slice_of(version: str, chips: str, hosts: str, more: str = "") -> str:
    def bounds(name: str, sizes: str) -> str:
        return (
            name
            + "_bounds {\n"
            + "".join(f"  {axis}: {size}\n" for axis, size in zip("xyz", sizes, strict=True))
            + "}\n"
        )

    body = bounds("chips_per_host", chips) + bounds("host", hosts)
    return f"tpu_topology_args {{\n  version: TPU_VERSION_{version}\n{more}{body}}}\n"


def test_a_real_file() -> None:
    assert read_target(V5E.read_text()) == "v5e:2x2"


@pytest.mark.parametrize(
    ("text", "target"),
    [
        (slice_of("JELLYFISH", "221", "111"), "v2:2x2"),
        (slice_of("DRAGONFISH", "221", "111"), "v3:2x2"),
        (slice_of("PUFFERFISH", "221", "112"), "v4:2x2x2"),
        (slice_of("PUFFERFISH", "221", "111", 'chip_config_name: "megacore"\n'), "v4:2x2x1:megacore"),
        (slice_of("VIPERFISH", "221", "221", 'variant: "lite"\n'), "v5e:4x4"),
        (slice_of("VIPERFISH", "221", "111"), "v5p:2x2x1"),
        (slice_of("GHOSTLITE", "221", "481"), "v6e:8x16"),
        (slice_of("6acc60406", "221", "111"), "tpu7x:2x2x1"),
    ],
)
def test_generations_and_sizes(text: str, target: str) -> None:
    assert read_target(text) == target


def test_several_slices() -> None:
    one = slice_of("GHOSTLITE", "221", "221")
    text = f"multislice_topology {{ slice_info {{ {one} }} slice_info {{ slice_id: 1 {one} }} }}\n{one}"
    assert read_target(text) == "2xv6e:4x4"


@pytest.mark.parametrize("text", ["", "replica_count: 1\n", slice_of("UNHEARD_OF", "221", "111")])
def test_what_it_does_not_know_it_does_not_guess(text: str) -> None:
    assert read_target(text) is None
