from __future__ import annotations

import dataclasses

import pytest

from hlotrace.devices import (
    CHIPS,
    Sourced,
    chip_by_device_kind,
    chip_by_name,
    chip_by_target,
    chip_of,
    memory_space_name,
)

GIB = 1 << 30


def _numbers(chip):
    for field in dataclasses.fields(chip):
        value = getattr(chip, field.name)
        yield from (
            ((f"{field.name}.{key}", part) for key, part in value.items())
            if isinstance(value, dict)
            else [(field.name, value)]
        )


@pytest.mark.parametrize("chip", CHIPS, ids=lambda chip: chip.name)
def test_every_figure_of_a_chip_has_a_source_and_is_positive(chip):
    sourced = [(name, value) for name, value in _numbers(chip) if isinstance(value, Sourced)]
    assert len(sourced) >= 8
    for name, figure in sourced:
        assert figure.source, name
        assert figure.value > 0, name
        assert figure.basis in ("published", "measured", "derived", "guess"), name


@pytest.mark.parametrize("chip", CHIPS, ids=lambda chip: chip.name)
def test_what_a_device_may_use_of_its_hbm_is_a_little_less_than_it_has(chip):
    assert 0.9 < chip.hbm_usable.value / chip.device_hbm.value < 1
    assert chip.hbm_usable.basis == "measured"


def test_a_device_is_half_a_chip_where_each_core_is_a_device():
    v3, v5p, v7 = (chip_by_name(name) for name in ("v3", "v5p", "tpu7x"))
    assert v3.peak_flops("bf16").value == 123e12 / 2
    assert v5p.peak_flops("bf16").value == 459e12
    assert v7.peak_flops("bf16").value == 2307e12 / 2
    assert v7.device_hbm.value == 96 * GIB
    assert v7.device_vmem.value == v7.vmem.value
    assert v5p.device_vmem.value == 2 * v5p.vmem.value


def test_a_v4_run_as_megacore_is_one_device_with_all_of_the_chip():
    v4 = chip_by_name("v4")
    joined = v4.with_devices(1)
    assert joined.cores_per_device == 2
    assert joined.peak_flops("bf16").value == 2 * v4.peak_flops("bf16").value
    assert joined.hbm_usable.value == 2 * v4.hbm_usable.value


def test_peaks_are_per_dtype_and_unknown_where_nobody_says_one():
    v5e, v7 = chip_by_name("v5e"), chip_by_name("tpu7x")
    assert v5e.peak_flops("s8").value == 393e12
    assert v5e.peak_flops("u8").value == v5e.peak_flops("s8").value
    assert v5e.peak_flops("f32") is None
    assert v5e.peak_flops("f8e4m3fn") is None
    assert v7.peak_flops("f8e5m2").value == 4614e12 / 2


def test_derived_clocks_follow_from_the_peak_and_guesses_say_so():
    for chip in CHIPS:
        if chip.clock is None or chip.clock.basis == "published":
            continue
        passes = 2 * chip.mxu_size.value**2 * chip.mxus.value * chip.cores
        times = 2 if chip.clock.basis == "guess" else 1
        assert chip.clock.value == pytest.approx(chip.flops["bf16"].value / passes / times, rel=0.01), chip.name


@pytest.mark.parametrize(
    ("target", "name"),
    [
        ("v5e:2x2", "v5e"),
        ("v4:2x2x1", "v4"),
        ("tpu7x:2x2x1", "tpu7x"),
        ("2xv6e:4x4", "v6e"),
        ("v5p", "v5p"),
        ("v5litepod:4x4", "v5e"),
    ],
)
def test_a_target_names_its_chip(target, name):
    assert chip_by_target(target).name == name


@pytest.mark.parametrize("target", ["cpu", "gpu", "", None, "v99:2x2", "2x"])
def test_targets_that_are_no_tpu_have_no_chip(target):
    assert chip_by_target(target) is None


def test_the_compilers_own_device_kinds_are_known():
    kinds = ["TPU v2", "TPU v3", "TPU v4", "TPU v5 lite", "TPU v5", "TPU v6 lite", "TPU7x"]
    assert [chip_by_device_kind(kind).device_kind for kind in kinds] == kinds
    assert chip_by_device_kind("cpu") is None
    assert chip_by_device_kind(None) is None


def test_a_module_with_megacore_has_the_chip_of_its_target_not_of_its_device_kind():
    chip = chip_of("v4:2x2x1:megacore", "TPU v4")
    assert chip.devices == 1
    assert chip.peak_flops("bf16").value == 275e12
    assert chip_of("tpu", "TPU v4").devices == 2
    assert chip_of("cpu", None) is None


def test_memory_spaces_are_named_by_platform_and_unknown_ones_keep_their_number():
    assert [memory_space_name("tpu", space) for space in (0, 1, 5, 77)] == ["HBM", "VMEM", "host memory", "S(77)"]
    assert memory_space_name("cpu", 0) == "host memory"
    assert memory_space_name("cpu", 1) == "S(1)"
    assert memory_space_name("", 0) == "S(0)"
