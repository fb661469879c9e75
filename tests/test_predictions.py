from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hlotrace.devices import chip_by_name, chip_by_target
from hlotrace.hlo.calibration import ANY_CLASS, calibration
from hlotrace.hlo.facts import Facts
from hlotrace.hlo.links import link_ns, sent_bytes
from hlotrace.hlo.operation_class import CLASSES
from hlotrace.hlo.predictions import BASES, Raw, predict
from hlotrace.hlo.replica_groups import group_size
from hlotrace.hlo.tables import module_tables
from hlotrace.parsers.hlo_text import read_modules
from hlotrace.tables import PREDICTIONS

DOCS = Path(__file__).parent.parent / "docs"
MIB = 1 << 20


def rows(text: str, chip: str = "v5e") -> dict[str, dict]:
    hlo = next(read_modules(text))
    made = module_tables(hlo, module="m", stage="after_codegen", platform="tpu", chip=chip_by_target(chip))
    assert made["predictions"].schema == PREDICTIONS.arrow_schema()
    return {row["instruction"]: row for row in made["predictions"].to_pylist()}


def entry(*lines: str, before: str = "", header: str = "HloModule m") -> str:
    body = "\n".join(f"  {line}" for line in lines)
    return f"{header}\n\n{before}\nENTRY main {{\n{body}\n}}\n"


A = "bf16[2048,4096]{1,0:T(8,128)(2,1)}"
W = "bf16[4096,4096]{1,0:T(8,128)(2,1)}"
FUSED = f"""fused {{
  a = {A} parameter(0)
  w = {W} parameter(1)
  ROOT d = {A} dot(a, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
}}
"""


def product(cycles: str = '"540000"') -> str:
    config = f'backend_config={{"window_config":{{"estimated_cycles":{cycles}}}}}'
    fusion = f"ROOT f = {A} fusion(a, w), kind=kOutput, calls=fused, {config}"
    return entry(f"a = {A} parameter(0)", f"w = {W} parameter(1)", fusion, before=FUSED)


def test_a_product_goes_by_the_cost_model_over_the_clock():
    row = rows(product())["f"]
    assert (row["class"], row["basis"], row["is_calibrated"], row["bound_by"]) == (
        "matmul fusion",
        "cost model",
        True,
        "compute",
    )
    assert row["predicted_ns"] == 360_000
    assert row["floor_ns"] == row["compute_floor_ns"] == round(2 * 2048 * 4096 * 4096 / 197e12 * 1e9)
    assert row["hbm_floor_ns"] == round((2 * 16 + 32) * MIB / 819e9 * 1e9)
    assert row["floor_ns"] <= row["low_ns"] <= row["predicted_ns"] <= row["high_ns"]


def test_the_largest_integer_is_no_estimate_and_the_floor_stands_in():
    row = rows(product('"9223372036854775807"'))["f"]
    assert row["estimated_cycles"] is None
    assert row["basis"] == "floor"
    assert row["predicted_ns"] > row["floor_ns"]


def test_nothing_is_predicted_below_its_floor():
    row = rows(product('"10"'))["f"]
    assert row["predicted_ns"] == row["low_ns"] == row["floor_ns"]


def test_eight_bit_products_have_a_peak_of_their_own():
    bf16, s8 = rows(product())["f"], rows(product().replace("bf16", "s8"))["f"]
    assert s8["compute_floor_ns"] == pytest.approx(bf16["compute_floor_ns"] * 197 / 393, rel=1e-3)


def test_vmem_is_no_hbm_traffic_and_has_a_floor_of_its_own():
    fast = "f32[1024,1024]{1,0:T(8,128)S(1)}"
    row = rows(entry(f"a = {fast} parameter(0)", f"ROOT n = {fast} negate(a)"))["n"]
    assert (row["hbm_bytes"], row["hbm_floor_ns"]) == (0, 0)
    assert row["vmem_floor_ns"] == round(4 * MIB / (1.5e9 * 12288) * 1e9)


def test_an_async_copy_is_hbm_traffic_once():
    slow, fast = "f32[1024,1024]{1,0:T(8,128)}", "f32[1024,1024]{1,0:T(8,128)S(1)}"
    found = rows(
        entry(
            f"a = {slow} parameter(0)",
            f"s = ({fast}, {slow}, u32[]{{:S(2)}}) copy-start(a)",
            f"ROOT d = {fast} copy-done(s)",
        )
    )
    assert list(found) == ["s"]
    assert (found["s"]["class"], found["s"]["hbm_bytes"], found["s"]["is_calibrated"]) == ("async copy", 4 * MIB, False)


def test_a_tiny_launch_is_bound_by_its_start():
    row = rows(entry("a = f32[8]{0:T(128)} parameter(0)", "ROOT n = f32[8]{0:T(128)} negate(a)"))["n"]
    assert row["bound_by"] == "overhead"
    assert row["predicted_ns"] == round(calibration().overhead_ns)


def kernel(config: str = "") -> str:
    call = 'ROOT k = f32[1024]{0:T(1024)} custom-call(a), custom_call_target="tpu_custom_call"'
    return entry("a = f32[1024]{0:T(1024)} parameter(0)", call + config)


def test_a_kernel_without_an_estimate_is_unknown_and_not_0():
    row = rows(kernel())["k"]
    assert (row["class"], row["basis"]) == ("Pallas call", "unknown")
    names = ("predicted_ns", "low_ns", "high_ns", "floor_ns", "hbm_floor_ns", "bound_by", "is_calibrated", "flops")
    assert [row[name] for name in (*names, "hbm_bytes")] == [None] * 9


def test_a_kernel_goes_by_its_own_estimate():
    config = ', backend_config={"custom_call_config":{"cost_estimate":{"flops":"197000000000","bytes_accessed":"8"}}}'
    row = rows(kernel(config))["k"]
    assert (row["basis"], row["predicted_ns"], row["is_calibrated"]) == ("kernel estimate", 1_000_000, False)
    assert row["floor_ns"] is None


GATHER = (
    "gather(a, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, "
    "slice_sizes={1,128}"
)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("broadcast(z), dimensions={}", "bare broadcast, copy or convert"),
        ("copy(a)", "bare broadcast, copy or convert"),
        ("pad(a, z), padding=0_0x0_0", "bare slice or pad"),
        ("slice(a), slice={[0:8], [0:128]}", "bare slice or pad"),
        ("negate(a)", "loop fusion"),
        ("sort(a), dimensions={1}, to_apply=less", "sort"),
        (GATHER, "gather or scatter"),
        ("all-reduce(a), replica_groups={{0,1}}, to_apply=less", "collective"),
    ],
)
def test_classes(line, expected):
    less = (
        "less {\n  x = f32[] parameter(0)\n  y = f32[] parameter(1)\n  ROOT l = pred[] compare(x, y), direction=LT\n}\n"
    )
    shape = "f32[8,128]{1,0:T(8,128)}"
    text = entry(
        f"a = {shape} parameter(0)",
        "z = f32[]{:T(128)} parameter(1)",
        "i = s32[8]{0:T(128)} parameter(2)",
        f"ROOT r = {shape} {line}",
        before=less,
    )
    assert rows(text)["r"]["class"] == expected


def test_loops_count_by_their_trips_and_unknown_trips_are_null():
    loop = (Path(__file__).parent / "data" / "scan-v5e").rglob("*after_codegen.txt")
    text = next(loop).read_text()
    counts = {row["execution_count"] for row in rows(text).values()}
    assert counts == {1, 2}


@pytest.mark.parametrize("chip", ["v2", "v4:2x2x1", "v5p", "v6e", "tpu7x"])
def test_every_generation_has_floors(chip):
    row = rows(product(), chip)["f"]
    assert row["floor_ns"] > 0
    assert row["low_ns"] <= row["predicted_ns"] <= row["high_ns"]


def test_without_a_chip_there_are_no_predictions():
    made = module_tables(next(read_modules(product())), module="m", stage="s", platform="tpu")
    assert made["predictions"].num_rows == 0


@pytest.mark.parametrize(
    ("attributes", "size"),
    [
        ("replica_groups={{0,1},{2,3}}", 2),
        ("replica_groups={}", 8),
        ("replica_groups=[4,2]<=[2,4]T(1,0)", 2),
        ("replica_groups=mesh['axis_0'=4,'axis_1'=2], device_ids=([4,2]T(1,0)) {'axis_0'}", 4),
        ("replica_groups=mesh['axis_0'=4,'axis_1'=2] {'axis_0','axis_1'}", 8),
        ("replica_groups=mesh['axis_0'=4] {'other'}", None),
        ("channel_id=1", None),
    ],
)
def test_groups_in_every_notation(attributes, size):
    assert group_size(attributes, 8) == size


@given(st.sampled_from(["all-gather", "all-reduce", "reduce-scatter", "all-to-all"]), st.integers(0, 1 << 40))
def test_a_group_of_one_sends_nothing(kind, size):
    assert sent_bytes(kind, size, 1) == 0


def test_collectives_go_over_two_links():
    shape = "f32[1024,1024]{1,0:T(8,128)}"
    line = f"ROOT r = {shape} all-reduce(a), replica_groups={{{{0,1,2,3}}}}, to_apply=add"
    add = "add {\n  x = f32[] parameter(0)\n  y = f32[] parameter(1)\n  ROOT s = f32[] add(x, y)\n}\n"
    text = entry(f"a = {shape} parameter(0)", line, before=add, header="HloModule m, num_partitions=4")
    row = rows(text)["r"]
    assert (row["basis"], row["bound_by"], row["is_calibrated"]) == ("link model", "links", False)
    assert row["predicted_ns"] == round(2 * 4 * MIB * 3 / 4 / (2 * 45e9) * 1e9)
    facts = Facts(next(read_modules(text)))
    assert np.isnan(link_ns(facts, np.flatnonzero(facts.is_launch), chip_by_name("v3"))).all()


def test_a_collective_that_a_sparse_core_runs_is_found_in_what_it_calls():
    small, whole = "f32[1024]{0:T(1024)}", "f32[4096]{0:T(1024)}"
    inner = f"""called {{
  c = {small} parameter(0)
  ROOT g = {whole} all-gather(c), replica_groups={{{{0,1,2,3}}}}, dimensions={{0}}
}}

around {{
  b = {small} parameter(0)
  ROOT k = {whole} call(b), to_apply=called
}}
"""
    start = f's = (({small}), {whole}, u32[]) async-start(a), async_execution_thread="sparsecore", calls=around'
    done = f"ROOT d = {whole} async-done(s), calls=around"
    text = entry(f"a = {small} parameter(0)", start, done, before=inner, header="HloModule m, num_partitions=4")
    row = rows(text)["s"]
    assert (row["class"], row["basis"]) == ("collective", "link model")
    assert row["predicted_ns"] == max(round(3 * 4096 / 90e9 * 1e9), round(calibration().overhead_ns))


TIMES = st.one_of(st.just(float("nan")), st.floats(0, 1e12))


@given(
    st.lists(
        st.tuples(st.sampled_from(range(len(CLASSES))), *[TIMES] * 6, st.booleans(), st.sampled_from(["HBM", "VMEM"])),
        max_size=8,
    )
)
def test_a_prediction_is_in_its_range_and_known_exactly_when_its_basis_is(launches):
    classes, model, bundles, scaled, link, kernel_ns, floor, hbm, unit = (
        list(column) for column in (zip(*launches, strict=True) if launches else [[]] * 9)
    )
    figures = [np.array(column, float) for column in (model, bundles, scaled, link, kernel_ns)]
    found = predict(np.array(classes, np.int32), Raw(unit, *figures), np.array(floor, float), np.array(hbm, bool))
    known = found.basis != "unknown"
    for values in (found.ns, found.low, found.high):
        assert (np.isnan(values) == ~known).all()
    assert (found.low[known] <= found.ns[known]).all()
    assert (found.ns[known] <= found.high[known]).all()
    floors = np.nan_to_num(np.array(floor, float))
    assert (found.low[known] >= np.minimum(floors[known], found.ns[known])).all()
    assert not found.calibrated[~known].any()


def test_every_basis_of_a_class_has_a_rule():
    for name in CLASSES:
        for basis in BASES.get(name, ("floor",)):
            rule, _ = calibration().rule(name, basis, "HBM" if basis == "floor" else "")
            assert rule.low <= rule.median <= rule.high


def test_a_class_of_too_few_kinds_is_not_calibrated():
    assert not calibration().rule("collective", "link model")[1]
    assert not calibration().rule("Pallas call", "bundles")[1]
    assert calibration().rule("matmul fusion", "cost model")[1]
    assert (ANY_CLASS, ANY_CLASS, "") in calibration().rules


def test_the_accuracy_page_and_the_factors_are_what_the_measurements_make():
    made = runpy.run_path(str(DOCS / "make_accuracy.py"))
    measured = made["kinds"]()
    found = made["calibration_rows"](measured)
    assert (DOCS / "accuracy.md").read_text(encoding="utf-8") == made["page"](measured, found), "run make_accuracy.py"
    lines = made["CALIBRATION"].read_text(encoding="utf-8").splitlines()
    assert len(lines) == len(found) + 1
