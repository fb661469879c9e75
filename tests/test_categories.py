from __future__ import annotations

import pytest

from hlotrace.hlo.category import CATEGORIES
from hlotrace.hlo.tables import module_tables
from hlotrace.parsers.hlo_text import read_modules


def categories(text: str, platform: str = "tpu") -> dict[str, str]:
    table = module_tables(next(read_modules(text)), module="m", stage="s", platform=platform)["instructions"]
    return {row["instruction"]: row["category"] for row in table.to_pylist()}


def one(line: str, *parameters: str, before: str = "") -> str:
    """The category of an instruction that stands alone in a module."""
    declared = "\n".join(f"  p{number} = {shape} parameter({number})" for number, shape in enumerate(parameters))
    return categories(f"HloModule m\n{before}\nENTRY main {{\n{declared}\n  ROOT outermost = {line}\n}}\n")["outermost"]


def fused(*members: str, result: str = "f32[8,8]", kind: str = "kLoop", before: str = "") -> str:
    """The category of a fusion of these members, whose parameters are a, b (f32[8,8]) and i (s32[])."""
    body = "\n  ".join(("a = f32[8,8] parameter(0)", "b = f32[8,8] parameter(1)", "i = s32[] parameter(2)", *members))
    computation = f"{before}\nfused {{\n  {body}\n}}\n"
    return one(
        f"{result} fusion(p0, p1, p2), kind={kind}, calls=fused", "f32[8,8]", "f32[8,8]", "s32[]", before=computation
    )


ADD = "add {\n  x = f32[] parameter(0)\n  y = f32[] parameter(1)\n  ROOT z = f32[] add(x, y)\n}\n"
DOT = "f32[8,8] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}"


@pytest.mark.parametrize(
    ("line", "parameters", "category"),
    [
        ("f32[8] add(p0, p0)", ["f32[8]"], "elementwise"),
        ("f32[8] exponential(p0)", ["f32[8]"], "elementwise"),
        ("f32[8,4] transpose(p0), dimensions={1,0}", ["f32[4,8]"], "data movement"),
        ("f32[8] copy(p0)", ["f32[8]"], "data movement"),
        ("f32[2,4] reshape(p0)", ["f32[8]"], "data movement"),
        ("f32[8] bitcast(p0)", ["f32[2,4]"], "control"),
        ("(f32[8]) tuple(p0)", ["f32[8]"], "control"),
        ("f32[8] all-reduce(p0), to_apply=add", ["f32[8]"], "collective"),
        ("f32[8] sort(p0), dimensions={0}, to_apply=add", ["f32[8]"], "sort"),
        ("f32[] reduce(p0, p1), dimensions={0}, to_apply=add", ["f32[8]", "f32[]"], "reduction"),
        ('f32[8] custom-call(p0), custom_call_target="tpu_custom_call"', ["f32[8]"], "custom call"),
        ('f32[8] custom-call(p0), custom_call_target="__cublas$gemm"', ["f32[8]"], "matmul"),
        ('f32[8] custom-call(), custom_call_target="AllocateBuffer"', [], "data movement"),
        ("f32[8]{0:S(5)} copy(p0)", ["f32[8]"], "host"),
        ("f32[4,4] dot(p0, p0), lhs_contracting_dims={1}, rhs_contracting_dims={0}", ["f32[4,4]"], "matmul"),
        ("c64[8] fft(p0), fft_type=FFT, fft_length={8}", ["c64[8]"], "other"),
    ],
)
def test_an_opcode_is_of_its_kind(line, parameters, category):
    assert one(line, *parameters, before=ADD) == category


@pytest.mark.parametrize(
    ("result", "attributes", "parameters", "category"),
    [
        # What slides over its input is a convolution.
        (
            "f32[1,6,6,4]",
            "window={size=3x3}, dim_labels=b01f_01io->b01f",
            ["f32[1,8,8,3]", "f32[3,3,3,4]"],
            "convolution",
        ),
        (
            "f32[1,4,4,4]",
            "window={size=2x2 stride=2x2}, dim_labels=b01f_01io->b01f",
            ["f32[1,8,8,3]", "f32[2,2,3,4]"],
            "convolution",
        ),
        # As the TPU compiler writes products: plain, contracted over a spatial dimension, batched.
        ("bf16[4,8,32]", "window={size=1}, dim_labels=0bf_io0->0bf", ["bf16[4,8,16]", "bf16[16,32,1]"], "matmul"),
        ("bf16[16,32,1]", "window={size=4}, dim_labels=0fb_0io->bf0", ["bf16[4,8,16]", "bf16[4,8,32]"], "matmul"),
        (
            "bf16[4,16,8,8]",
            "window={size=4x16 stride=3x15 lhs_dilate=4x16}, dim_labels=0b1f_0o1i->01bf",
            ["bf16[4,8,16,64]", "bf16[4,8,16,64]"],
            "matmul",
        ),
        (
            "bf16[4,8,64,16]",
            "window={size=4x8 stride=4x8 pad=3_3x7_7 lhs_dilate=3x7 rhs_reversal=1x1}, dim_labels=0f1b_01oi->01fb",
            ["bf16[4,32,8,16]", "bf16[4,8,64,32]"],
            "matmul",
        ),
    ],
)
def test_a_convolution_is_a_matmul_when_nothing_slides(result, attributes, parameters, category):
    assert one(f"{result} convolution(p0, p1), {attributes}", *parameters) == category


def test_a_fusion_is_of_the_kind_of_the_heaviest_thing_in_it():
    assert fused("ROOT r = f32[8,8] add(a, b)") == "loop fusion"
    assert fused("ROOT r = f32[8,8] transpose(a), dimensions={1,0}") == "data movement"
    assert fused("z = f32[] constant(0)", "ROOT r = f32[8,8] broadcast(z), dimensions={}") == "data movement"
    reduced = (
        "c = f32[8,8] multiply(a, b)",
        "z = f32[] constant(0)",
        "ROOT r = f32[8] reduce(c, z), dimensions={1}, to_apply=add",
    )
    assert fused(*reduced, result="f32[8]", before=ADD) == "reduction"
    assert fused(f"c = {DOT}", "ROOT r = f32[8,8] add(c, b)") == "matmul"
    sums = ("z = f32[] constant(0)", "s = f32[8] reduce(a, z), dimensions={1}, to_apply=add", f"c = {DOT}")
    both = "(f32[8], f32[8,8])"
    assert fused(*sums, f"ROOT r = {both} tuple(s, c)", result=both, before=ADD) == "matmul"


def test_arithmetic_on_an_index_does_not_make_a_slice_a_computation():
    index = ("one = s32[] constant(1)", "j = s32[] subtract(i, one)", "z = s32[] constant(0)")
    slicing = "ROOT r = f32[1,8] dynamic-slice(a, j, z), dynamic_slice_sizes={1,8}"
    assert fused(*index, slicing, result="f32[1,8]") == "data movement"
    assert fused("one = s32[] constant(1)", "ROOT r = s32[] add(i, one)", result="s32[]") == "loop fusion"


def test_the_reducer_of_a_fusion_does_not_make_it_elementwise():
    scatter_dims = (
        "update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1"
    )
    members = (
        "k = s32[2,1] constant({{0},{1}})",
        "u = f32[2,8] slice(b), slice={[0:2],[0:8]}",
        f"ROOT r = f32[8,8] scatter(a, k, u), {scatter_dims}, to_apply=add",
    )
    assert fused(*members, kind="kCustom", before=ADD) == "data movement"


def test_a_product_that_carries_a_collective_along_is_a_product():
    gather = "g = f32[16,8] all-gather(a), replica_groups={{0,1}}, dimensions={0}"
    result = "(f32[8,8], f32[16,8])"
    assert fused(gather, f"c = {DOT}", f"ROOT r = {result} tuple(c, g)", result=result, kind="kOutput") == "matmul"
    assert fused("ROOT r = f32[16,8] all-gather(a), dimensions={0}", result="f32[16,8]", kind="kCustom") == "collective"


def test_fusions_in_fusions_count_for_the_outer_one():
    inner = (
        "inner {\n  c = f32[8,8] parameter(0)\n  d = f32[8,8] parameter(1)\n  ROOT e = "
        + DOT.replace("(a, b)", "(c, d)")
        + "\n}\n"
    )
    assert (
        fused("f = f32[8,8] fusion(a, b), kind=kOutput, calls=inner", "ROOT r = f32[8,8] add(f, a)", before=inner)
        == "matmul"
    )


def test_both_halves_of_an_async_operation_are_of_the_kind_of_what_it_starts():
    text = """HloModule m
slicing { a = f32[8] parameter(0)
  ROOT b = f32[2] slice(a), slice={[0:2]}
}
gathering { c = f32[8] parameter(0)
  ROOT d = f32[16] all-gather(c), dimensions={0}
}
ENTRY main { p = f32[8] parameter(0)
  s = ((f32[8]), f32[2], s32[]) async-start(p), calls=slicing
  t = ((f32[8]), f32[16], s32[]) async-start(p), calls=gathering
  u = ((f32[8]), f32[16], s32[]) async-update(t)
  v = f32[2] async-done(s)
  w = f32[16] async-done(u)
  x = (f32[8]{0:S(1)}, f32[8], u32[]) copy-start(p)
  y = f32[8]{0:S(1)} copy-done(x)
  k = (f32[8]{0:S(5)}, f32[8], u32[]) copy-start(p)
  l = f32[8]{0:S(5)} copy-done(k)
  ROOT r = (f32[2], f32[16], f32[8]{0:S(1)}) tuple(v, w, y)
}
"""
    found = categories(text)
    assert [found[name] for name in "sv"] == ["async copy"] * 2
    assert [found[name] for name in "tuw"] == ["collective"] * 3
    assert [found[name] for name in "xy"] == ["async copy"] * 2
    assert [found[name] for name in "kl"] == ["host"] * 2


def test_sends_and_receives_are_collectives_unless_they_go_to_the_host():
    text = """HloModule m
ENTRY main { p = f32[8] parameter(0)
  t = token[] after-all()
  s = (f32[8], u32[], token[]) send(p, t), channel_id=1
  h = (f32[8], u32[], token[]) send(p, t), channel_id=2, is_host_transfer=true
  d = token[] send-done(s), channel_id=1
  ROOT e = token[] send-done(h), channel_id=2, is_host_transfer=true
}
"""
    found = categories(text)
    assert [found[name] for name in "shde"] == ["collective", "host", "collective", "host"]


def test_every_category_that_is_given_is_a_declared_one(shared_data):
    seen = set()
    for path in sorted((shared_data / "tpu-autoresearch-wiki").glob("*.hlo")):
        seen |= set(categories(path.read_text()).values())
    assert seen <= set(CATEGORIES)
    assert {"matmul", "collective", "loop fusion", "reduction", "data movement", "async copy", "custom call"} <= seen
