from __future__ import annotations

import json

import pytest

from hlotrace.hlo.facts import Facts
from hlotrace.hlo.tables import module_tables
from hlotrace.parsers.hlo_text import read_modules


def moved(text: str, instruction: str, platform: str = "tpu") -> tuple[int, int]:
    """Bytes that one execution of an instruction reads and writes."""
    table = module_tables(next(read_modules(text)), module="m", stage="s", platform=platform)["instructions"]
    row = next(row for row in table.to_pylist() if row["instruction"] == instruction)
    return row["hbm_read_bytes"], row["hbm_write_bytes"]


def entry(*lines: str, before: str = "") -> str:
    body = "\n".join(f"  {line}" for line in lines)
    return f"HloModule m\n\n{before}\nENTRY main {{\n{body}\n}}\n"


def computation(name: str, *lines: str) -> str:
    body = "\n".join(f"  {line}" for line in lines)
    return f"{name} {{\n{body}\n}}\n"


BIG = "p = f32[12,1024]{1,0} parameter(0)"
INDEX = "i = s32[] parameter(1)"
ZERO = "z = s32[] constant(0)"


def test_distinct_operands_are_read_once_and_the_result_is_written():
    text = entry("p = f32[1024]{0} parameter(0)", "q = f32[1024]{0} parameter(1)", "ROOT r = f32[1024]{0} add(p, q)")
    assert moved(text, "r") == (8192, 4096)
    assert moved(text.replace("add(p, q)", "multiply(p, p)"), "r") == (4096, 4096)


def test_padding_is_moved_too():
    text = entry("p = f32[9,256]{1,0:T(8,128)} parameter(0)", "ROOT r = f32[9,256]{1,0:T(8,128)} negate(p)")
    assert moved(text, "r") == (16384, 16384)


def test_values_in_vmem_are_no_hbm_traffic():
    text = entry("p = f32[1024]{0:T(1024)S(1)} parameter(0)", "ROOT r = f32[1024]{0:T(1024)} negate(p)")
    assert moved(text, "r") == (0, 4096)


def test_an_async_copy_counts_once_on_the_side_that_is_hbm():
    shape = "f32[1024]{0:T(1024)}"
    fast = "f32[1024]{0:T(1024)S(1)}"
    text = entry(
        f"p = {shape} parameter(0)",
        f"start = ({fast}, {shape}, u32[]{{:S(2)}}) copy-start(p)",
        f"done = {fast} copy-done(start)",
        f"back = ({shape}, {fast}, u32[]{{:S(2)}}) copy-start(done)",
        f"ROOT r = {shape} copy-done(back)",
    )
    assert [moved(text, name) for name in ("start", "done", "back", "r")] == [(4096, 0), (0, 0), (0, 4096), (0, 0)]


def test_an_async_slice_reads_the_slice_at_its_start():
    slicing = computation(
        "slicing",
        "a = f32[12,1024]{1,0} parameter(0)",
        "ROOT b = f32[1,1024]{1,0:S(1)} slice(a), slice={[3:4],[0:1024]}",
    )
    text = entry(
        BIG,
        "start = ((f32[12,1024]{1,0}), f32[1,1024]{1,0:S(1)}, s32[]) async-start(p), calls=slicing",
        "ROOT r = f32[1,1024]{1,0:S(1)} async-done(start)",
        before=slicing,
    )
    assert moved(text, "start") == (4096, 0)
    assert moved(text, "r") == (0, 0)


def test_slices_and_gathers_read_what_they_touch():
    assert moved(entry(BIG, "ROOT r = f32[2,1024]{1,0} slice(p), slice={[0:2],[0:1024]}"), "r") == (8192, 8192)
    sliced = entry(BIG, INDEX, ZERO, "ROOT r = f32[1,1024]{1,0} dynamic-slice(p, i, z), dynamic_slice_sizes={1,1024}")
    assert moved(sliced, "r") == (4096 + 8, 4096)
    rows = "offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,1024}"
    gathered = entry(BIG, "k = s32[3,1]{1,0} parameter(1)", f"ROOT r = f32[3,1024]{{1,0}} gather(p, k), {rows}")
    assert moved(gathered, "r") == (3 * 4096 + 12, 3 * 4096)


def test_an_update_in_place_touches_the_update_alone():
    text = entry(
        BIG,
        INDEX,
        ZERO,
        "u = f32[1,1024]{1,0} parameter(2)",
        "ROOT r = f32[12,1024]{1,0} dynamic-update-slice(p, u, i, z)",
    )
    assert moved(text, "r") == (4096 + 8, 4096)


def test_a_scatter_reads_and_writes_what_it_changes():
    add = computation("add", "a = f32[] parameter(0)", "b = f32[] parameter(1)", "ROOT c = f32[] add(a, b)")
    dims = "update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1"
    text = entry(
        BIG,
        "k = s32[3,1]{1,0} parameter(1)",
        "u = f32[3,1024]{1,0} parameter(2)",
        f"ROOT r = f32[12,1024]{{1,0}} scatter(p, k, u), {dims}, to_apply=add",
        before=add,
    )
    assert moved(text, "r") == (3 * 4096 + 12 + 3 * 4096, 3 * 4096)


FUSED = ("a = f32[12,1024]{1,0} parameter(0)", "j = s32[] parameter(1)", "zero = s32[] constant(0)")
SLICE = "f32[1,1024]{1,0} dynamic-slice(a, j, zero), dynamic_slice_sizes={1,1024}"


def fusion(*members: str, result: str, before: str = "", extra: str = "") -> str:
    operands = "p, i, u" if "parameter(2)" in " ".join(members) else "p, i"
    return entry(
        BIG,
        INDEX,
        "u = f32[1,1024]{1,0} parameter(2)",
        f"ROOT r = {result} fusion({operands}), kind=kLoop, calls=fused{extra}",
        before=before + computation("fused", *FUSED, *members),
    )


def test_a_fusion_that_slices_its_operand_reads_the_slice():
    text = fusion(f"s = {SLICE}", "ROOT n = f32[1,1024]{1,0} negate(s)", result="f32[1,1024]{1,0}")
    assert moved(text, "r") == (4096 + 4, 4096)


def test_a_fusion_that_converts_and_then_slices_reads_the_slice_too():
    members = ("c = f32[12,1024]{1,0} abs(a)", f"ROOT s = {SLICE.replace('(a,', '(c,')}")
    assert moved(fusion(*members, result="f32[1,1024]{1,0}"), "r") == (4096 + 4, 4096)


def test_a_fusion_reads_all_of_what_it_slices_and_also_uses_whole():
    members = (
        f"s = {SLICE}",
        "b = f32[12,1024]{1,0} broadcast(s), dimensions={0,1}",
        "ROOT x = f32[12,1024]{1,0} add(a, b)",
    )
    assert moved(fusion(*members, result="f32[12,1024]{1,0}"), "r") == (12 * 4096 + 4, 12 * 4096)


def test_a_fusion_that_updates_its_operand_writes_the_update_and_does_not_read_the_operand():
    members = (
        "b = f32[1,1024]{1,0} parameter(2)",
        "n = f32[1,1024]{1,0} negate(b)",
        "ROOT x = f32[12,1024]{1,0} dynamic-update-slice(a, n, j, zero)",
    )
    assert moved(fusion(*members, result="f32[12,1024]{1,0}"), "r") == (4096 + 4, 4096)


def test_an_update_behind_a_bitcast_or_in_a_tuple_is_in_place_as_well():
    update = ("b = f32[1,1024]{1,0} parameter(2)", "x = f32[12,1024]{1,0} dynamic-update-slice(a, b, j, zero)")
    behind = fusion(*update, "ROOT y = f32[12,32,32]{2,1,0} bitcast(x)", result="f32[12,32,32]{2,1,0}")
    assert moved(behind, "r") == (4096 + 4, 4096)
    both = "(f32[12,1024]{1,0}, f32[1,1024]{1,0})"
    in_tuple = fusion(*update, "n = f32[1,1024]{1,0} negate(b)", f"ROOT y = {both} tuple(x, n)", result=both)
    assert moved(in_tuple, "r") == (4096 + 4, 2 * 4096)


def test_an_update_of_what_the_fusion_makes_itself_writes_everything():
    members = (
        "b = f32[1,1024]{1,0} parameter(2)",
        "o = f32[] constant(0)",
        "w = f32[12,1024]{1,0} broadcast(o), dimensions={}",
        "ROOT x = f32[12,1024]{1,0} dynamic-update-slice(w, b, j, zero)",
    )
    assert moved(fusion(*members, result="f32[12,1024]{1,0}"), "r") == (4096 + 4, 12 * 4096)


def test_what_a_nested_fusion_slices_is_a_slice_of_the_outer_operand():
    inner = computation(
        "inner",
        "c = f32[12,1024]{1,0} parameter(0)",
        "k = s32[] parameter(1)",
        "nil = s32[] constant(0)",
        "ROOT d = f32[1,1024]{1,0} dynamic-slice(c, k, nil), dynamic_slice_sizes={1,1024}",
    )
    members = ("f = f32[1,1024]{1,0} fusion(a, j), kind=kLoop, calls=inner", "ROOT n = f32[1,1024]{1,0} negate(f)")
    assert moved(fusion(*members, result="f32[1,1024]{1,0}", before=inner), "r") == (4096 + 4, 4096)


def test_a_collective_that_is_under_way_counts_at_its_start_only():
    flag = "u32[]{:S(2)}"
    small, large = "f32[1024]{0:T(1024)}", "f32[2048]{0:T(1024)}"
    gather = "replica_groups={{0,1}}, dimensions={0}"
    before = (
        computation(
            "starting",
            f"a0 = {small} parameter(0)",
            f"g0 = {large} all-gather(a0), {gather}",
            f'ROOT s0 = ({small}, {large}, {flag}) custom-call(g0), custom_call_target="AsyncCollectiveStart"',
        )
        + computation(
            "carrying",
            f"a1 = {small} parameter(0)",
            f"b1 = {large} parameter(1)",
            f"c1 = {flag} parameter(2)",
            f"d1 = {small} parameter(3)",
            f"n1 = {small} negate(d1)",
            f"g1 = {large} all-gather(a1), {gather}",
            f"ROOT t1 = ({small}, {small}, {large}, {large}, {flag}) tuple(n1, a1, b1, g1, c1)",
        )
        + computation(
            "ending",
            f"a2 = {small} parameter(0)",
            f"b2 = {large} parameter(1)",
            f"c2 = {flag} parameter(2)",
            f"g2 = {large} all-gather(a2), {gather}",
            f'ROOT d2 = {large} custom-call(a2, b2, g2, c2), custom_call_target="AsyncCollectiveDone"',
        )
    )
    text = entry(
        f"p = {small} parameter(0)",
        f"q = {small} parameter(1)",
        f"start = ({small}, {large}, {flag}) fusion(p), kind=kCustom, calls=starting",
        f"e0 = {small} get-tuple-element(start), index=0",
        f"e1 = {large} get-tuple-element(start), index=1",
        f"e2 = {flag} get-tuple-element(start), index=2",
        f"work = ({small}, {small}, {large}, {large}, {flag}) fusion(e0, e1, e2, q), kind=kOutput, calls=carrying",
        f"f1 = {small} get-tuple-element(work), index=1",
        f"f2 = {large} get-tuple-element(work), index=2",
        f"f4 = {flag} get-tuple-element(work), index=4",
        f"ROOT done = {large} fusion(f1, f2, f4), kind=kCustom, calls=ending",
        before=before,
    )
    assert moved(text, "start") == (4096, 8192)
    assert moved(text, "work") == (4096, 4096)
    assert moved(text, "done") == (0, 0)


def test_synchronous_collectives_count_in_and_out_and_started_ones_their_second_element():
    groups = "replica_groups={{0,1}}, dimensions={0}"
    text = entry(
        "p = f32[1024]{0} parameter(0)",
        f"g = f32[2048]{{0}} all-gather(p), {groups}",
        f"s = (f32[1024]{{0}}, f32[2048]{{0}}) all-gather-start(p), {groups}",
        "d = f32[2048]{0} all-gather-done(s)",
        "ROOT r = f32[2048]{0} add(g, d)",
    )
    assert [moved(text, name) for name in "gsd"] == [(4096, 8192), (4096, 8192), (0, 0)]


def test_loops_and_calls_move_nothing_themselves_and_members_have_no_traffic_of_their_own():
    fused = computation("fused", "a = f32[1024]{0} parameter(0)", "ROOT b = f32[1024]{0} negate(a)")
    helper = computation(
        "helper", "c = f32[1024]{0} parameter(0)", "ROOT f = f32[1024]{0} fusion(c), kind=kLoop, calls=fused"
    )
    text = entry(
        "p = f32[1024]{0} parameter(0)", "ROOT r = f32[1024]{0} call(p), to_apply=helper", before=fused + helper
    )
    assert moved(text, "r") == (0, 0)
    assert moved(text, "f") == (4096, 4096)
    assert moved(text, "b") == (None, None)


def test_bytes_that_nobody_knows_are_null():
    assert moved(entry("p = f32[?,4] parameter(0)", "ROOT r = f32[?,4] negate(p)"), "r") == (None, None)


_SAVED_ACTIVATIONS = """
import json, sys
import jax, jax.numpy as jnp
topology = sys.argv[1]
if topology == "cpu":
    device = jax.devices()[0]
else:
    from jax.experimental import topologies
    device = topologies.get_topology_desc(platform="tpu", topology_name=topology).devices[0]
S = lambda *shape: jax.ShapeDtypeStruct(shape, jnp.float32, sharding=jax.sharding.SingleDeviceSharding(device))
def loss(w, x):
    return jax.lax.scan(lambda x, w: (jnp.sin(x @ w), None), x, w)[0].sum()
compiled = jax.jit(jax.grad(loss)).lower(S(16, 1024, 1024), S(2048, 1024)).compile()
print(json.dumps(compiled.as_text()))
"""


def _check_saved_activations(text: str) -> None:
    """Each trip touches one layer's weights and activations, never the stacks of all sixteen."""
    facts = Facts(next(read_modules(text)))
    table = module_tables(facts.hlo, module="m", stage="s", platform="tpu")["instructions"].to_pandas()
    stack = 16 * 2048 * 1024 * 4
    in_loop = table[table["is_launch"] & (table["execution_count"] == 16)]
    assert len(in_loop) > 4
    assert (in_loop["hbm_read_bytes"] < stack / 2).all()
    assert (in_loop["hbm_write_bytes"] < stack / 2).all()
    updates = in_loop[in_loop["shape"].str.contains(r"\[16,(?:2048|1024),1024\]")]
    assert len(updates) >= 2
    layer = 2048 * 1024 * 4
    assert (updates["hbm_write_bytes"] <= 2 * layer).all()
    # Forward and backward each move every layer's activations and weights a few times.
    moved_in_all = ((in_loop["hbm_read_bytes"] + in_loop["hbm_write_bytes"]) * in_loop["execution_count"]).sum()
    assert 4 * stack <= moved_in_all <= 30 * stack


def test_a_scan_with_saved_activations_touches_a_layer_a_trip_on_cpu(cpu_compiler):
    _check_saved_activations(json.loads(cpu_compiler(_SAVED_ACTIVATIONS, "cpu")))


@pytest.mark.tpu_compiler
def test_a_scan_with_saved_activations_touches_a_layer_a_trip_on_tpu(tpu_compiler):
    _check_saved_activations(json.loads(tpu_compiler(_SAVED_ACTIVATIONS, "v5e:2x2")))
