"""Target words: what is chosen for them, and that libtpu agrees."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys

import pytest

from hlotrace.capture.targets import choose, for_devices, known_words
from hlotrace.errors import CaptureError

ACCEPTED = [
    ("v2:2x2", "v2:2x2", 8),
    ("v3:2x2", "v3:2x2", 8),
    ("v4:2x2x1", "v4:2x2x1", 8),
    ("v5e:2x2", "v5e:2x2", 4),
    ("v5p:2x2x1", "v5p:2x2x1", 4),
    ("v6e:2x2", "v6e:2x2", 4),
    ("tpu7x:2x2x1", "tpu7x:2x2x1", 8),
    ("v5e:16x16", "v5e:16x16", 256),
    ("v6e:2x8", "v6e:2x8", 16),
    ("v5p:2x2x3", "v5p:2x2x3", 12),
    ("v5e-16", "v5e:4x4", 16),
    ("v5litepod-16", "v5e:4x4", 16),
    ("v6e-8", "v6e:2x4", 8),
    ("v6e-128", "v6e:8x16", 128),
    ("v5p-128", "v5p:4x4x4", 64),
    ("v5p-768", "v5p:4x8x12", 384),
    ("v2-8", "v2:2x2", 8),
    ("v3-32", "v3:4x4", 32),
    ("v4-8", "v4:2x2x1:megacore", 4),
    ("v4-32", "v4:2x2x4:megacore", 16),
    ("tpu7x-8", "tpu7x:2x2x1", 8),
    ("tpu7x-2", "tpu7x:1x1x1", 2),
    ("v5e-1", "v5e:1x1", 1),
    ("2xv6e:4x4", "2xv6e:4x4", 32),
    ("2xtpu7x:2x2x1", "2xtpu7x:2x2x1", 16),
    ("4xv5e-16", "4xv5e:4x4", 64),
    ("v5p:2x2", "v5p:2x2x1", 4),
    ("V5E:2x2", "v5e:2x2", 4),
    ("tpu-v5e:2x2", "v5e:2x2", 4),
    ("v5p-2x2x4", "v5p:2x2x4", 16),
    ("trillium:2x2", "v6e:2x2", 4),
]


@pytest.mark.parametrize(("word", "target", "devices"), ACCEPTED)
def test_a_word_means_one_topology_and_the_reason_says_which(word: str, target: str, devices: int) -> None:
    choice = choose(word)
    assert choice.spec.target == target
    assert choice.spec.device_count == devices
    assert choice.spec.requested == word
    assert target in choice.reason
    assert not choice.grows
    assert choice.as_bundle_target().target == target


@pytest.mark.parametrize(
    ("word", "devices", "target"),
    [
        ("v5e", 1, "v5e:2x2"),
        ("v5e", 4, "v5e:2x2"),
        ("v5e", 5, "v5e:2x4"),
        ("v5e", 16, "v5e:4x4"),
        ("v5e", 100, "v5e:8x16"),
        ("v5p", 16, "v5p:2x2x4"),
        ("v5p", 96, "v5p:4x4x8"),
        ("tpu7x", 16, "tpu7x:2x2x2"),
        ("2xv6e", 32, "2xv6e:4x4"),
        ("v4:megacore", 8, "v4:2x2x2:megacore"),
    ],
)
def test_a_bare_generation_grows_to_the_smallest_slice_that_holds_the_program(
    word: str, devices: int, target: str
) -> None:
    choice = choose(word)
    assert choice.grows
    assert for_devices(choice, devices).spec.target == target
    assert for_devices(choice, devices).spec.device_count >= devices


def test_a_program_larger_than_the_largest_slice_is_told_so() -> None:
    with pytest.raises(CaptureError, match=r"needs 257 devices, and the largest v5e slice has 256\. Ask for .*2xv5e"):
        for_devices(choose("v5e"), 257)


def test_whole_pods_and_cubes_wrap_around_and_smaller_slices_do_not() -> None:
    assert choose("v5e:16x16").spec.topology_options["wrap"] == [True, True, False]
    assert choose("v6e:8x16").spec.topology_options["wrap"] == [False, True, False]
    assert choose("v5p:4x4x8").spec.topology_options["wrap"] == [True, True, True]
    assert "wrap" not in choose("v5e:4x8").spec.topology_options
    assert "wrap" not in choose("v5p:2x4x4").spec.topology_options


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("v5x:2x2", "no target is named 'v5x:2x2'. Known: v5e:2x2"),
        ("h100", "no target is named 'h100'"),
        ("", "no target is named ''"),
        ("v5e:", "no target is named 'v5e:'. Known: v5e"),
        ("v5e:2x", "no target is named 'v5e:2x'. Known: v5e:2x2"),
        ("v5e:3x3", "target v5e:3x3: the first two sides are even"),
        ("v5e:0x2", "Near it: v5e:2x2."),
        ("v5p:2x2x0", "Near it: v5p:2x2x1."),
        ("v5e:2x2x2", "target v5e:2x2x2: a v5e topology has 2 sides, as v5e:2x2 has."),
        ("v5e:32x32", "the largest v5e slice has 256 chips, this has 1024. Ask for several slices, such as 2xv5e-256."),
        ("v5e-17", "no v5e slice has 17 chips. Near it: v5e-16, v5e-32."),
        ("v5p-7", "no v5p slice has 7 TensorCores. Near it: v5p-2, v5p-8."),
        ("v5e-100000", "no v5e slice has 100000 chips. Near it: v5e-256."),
        ("0xv5e", "target 0xv5e: a target has at least one slice."),
        ("v5e:2x2:megacore", "only v4 is compiled with or without megacore"),
    ],
)
def test_what_is_no_target_gets_one_line_with_what_is_near(word: str, message: str) -> None:
    with pytest.raises(CaptureError) as caught:
        choose(word)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 2


def test_an_unknown_target_names_all_that_is_known() -> None:
    with pytest.raises(CaptureError) as caught:
        choose("v7:2x2")
    assert all(word in str(caught.value) for word in known_words())


@pytest.mark.parametrize("word", known_words())
def test_every_word_that_is_offered_is_accepted(word: str) -> None:
    assert choose(word).spec.device_count > 0


_ASK_LIBTPU = """
import json, sys
from jax.experimental import topologies
for name, slices, options in json.load(sys.stdin):
    options = {key: tuple(value) if isinstance(value, list) else value for key, value in options.items()}
    devices = topologies.get_topology_desc(platform="tpu", topology_name=name, num_slices=slices, **options).devices
    print(json.dumps([len(devices), devices[0].device_kind]))
"""


@pytest.mark.tpu_compiler
@pytest.mark.skipif(importlib.util.find_spec("libtpu") is None, reason="libtpu is not installed")
def test_libtpu_has_every_topology_with_the_devices_that_we_say() -> None:
    grown = [for_devices(choose(word), count) for word in ("v5e", "v5p", "tpu7x") for count in (9, 33, 200)]
    choices = [choose(word) for word, _, _ in ACCEPTED] + grown
    asked = [[c.spec.topology_name, c.spec.num_slices, c.spec.topology_options] for c in choices]
    environment = {"JAX_PLATFORMS": "cpu", "TPU_SKIP_MDS_QUERY": "1", "ALLOW_MULTIPLE_LIBTPU_LOAD": "1"}
    done = subprocess.run(
        [sys.executable, "-c", _ASK_LIBTPU],
        input=json.dumps(asked),
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert answers == [[choice.spec.device_count, choice.spec.device_kind] for choice in choices]
