from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hlotrace.analyses import mxu
from hlotrace.hlo.product_shape import ProductShape, product_shape

FREE_AS_SPATIAL = (
    "window={size=2x4x4 stride=1x3x1 pad=0_0x0_0x3_3 lhs_dilate=2x4x1 rhs_reversal=0x0x1}, "
    "dim_labels=0b1f2_0o12i->01bf2"
)
SIZES = st.integers(1, 5000)


@pytest.mark.parametrize(
    ("opcode", "attributes", "result", "lhs", "rhs", "expected"),
    [
        ("dot", "lhs_contracting_dims={1}, rhs_contracting_dims={0}", (8, 16), (8, 32), (32, 16), (1, 8, 32, 16)),
        (
            "dot",
            "lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={2}",
            (4, 8, 16), (4, 8, 32), (4, 16, 32), (4, 8, 32, 16),
        ),
        ("convolution", "window={size=1}, dim_labels=0bf_io0->0bf", (2, 1024, 256), (2, 1024, 512), (512, 256, 1),
         (1, 2048, 512, 256)),
        ("convolution", "window={size=2x4 stride=1x3 lhs_dilate=2x4}, dim_labels=0b1f_0o1i->01bf",
         (2, 4, 127, 127), (2, 127, 4, 64), (2, 127, 4, 64), (8, 127, 64, 127)),
        ("convolution",
         FREE_AS_SPATIAL,
         (2, 4, 1024, 1024, 4), (2, 1024, 4, 64, 1), (2, 1024, 4, 4, 64), (8, 1024, 64, 4096)),
        ("convolution", "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f",
         (8, 28, 28, 64), (8, 28, 28, 32), (3, 3, 32, 64), (1, 8 * 28 * 28, 288, 64)),
    ],
)  # fmt: skip
def test_what_dots_and_convolutions_multiply(opcode, attributes, result, lhs, rhs, expected):
    found = product_shape(opcode, attributes, result, lhs, rhs)
    assert (found.batch, found.m, found.k, found.n) == expected


@pytest.mark.parametrize(("opcode", "attributes"), [("convolution", ""), ("dot", "lhs_contracting_dims={7}")])
def test_what_cannot_be_told_is_none(opcode, attributes):
    assert product_shape(opcode, attributes, (8, 16), (8, 32), (32, 16)) is None


@pytest.mark.parametrize(
    ("shape", "size", "share", "change"),
    [
        (ProductShape(8, 1024, 64, 4096), 128, 0.5, "k 64 → 128"),
        (ProductShape(8, 1024, 64, 4096), 256, 0.25, "k 64 → 256"),
        (ProductShape(1, 2048, 1024, 2816), 256, 1.0, None),
        (ProductShape(1, 8, 5120, 76032), 256, 1.0, None),
        (ProductShape(1, 8, 320, 1024), 256, 0.625, "k 320 → 256 or 512"),
        (ProductShape(1, 100, 256, 100), 128, 0.751, "n 100 → 128"),
    ],
)
def test_the_share_that_a_shape_can_use(shape, size, share, change):
    assert shape.share(size) == pytest.approx(share, abs=1e-3)
    assert shape.change(size) == change


@given(SIZES, SIZES, SIZES, st.sampled_from([128, 256]))
def test_padding_never_shrinks_and_larger_units_never_fit_better(m, k, n, size):
    shape = ProductShape(1, m, k, n)
    padded = shape.padded(size)
    assert padded.m >= m
    assert padded.k >= k
    assert padded.n >= n
    assert 0 < shape.share(256) <= shape.share(128) <= 1


def test_products_are_found_in_their_fusions_with_what_they_waste(synthetic):
    tables = synthetic.SyntheticTables(synthetic.layer_rows())
    computations = tables["computations"].assign(caller="fusion.1")
    instructions = tables["instructions"].assign(attributes="lhs_contracting_dims={1}, rhs_contracting_dims={0}")
    found = mxu.products(instructions, computations, "after_codegen", 128)
    assert list(found["launch"]) == ["fusion.1"]
    assert list(found["product"]) == ["[1024,1024] x [1024,1024]"]
    assert mxu.usable_share(found) == 1.0
    unknown = mxu.products(instructions, computations, "after_codegen", None)
    assert unknown["mxu_share"].isna().all()
    assert mxu.usable_share(unknown) is None
