"""Shapes as XLA writes them."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hlotrace.errors import ParseError
from hlotrace.hlo.shape_text import parse_shape

DTYPES = (
    *("pred", "s1", "s2", "s4", "s8", "s16", "s32", "s64", "u1", "u2", "u4", "u8", "u16", "u32", "u64"),
    *("f16", "bf16", "f32", "f64", "c64", "c128", "token", "opaque", "f4e2m1fn", "f8e3m4", "f8e4m3"),
    *("f8e4m3fn", "f8e4m3fnuz", "f8e4m3b11fnuz", "f8e5m2", "f8e5m2fnuz", "f8e8m0fnu"),
)


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_element_type_is_read(dtype):
    shape = parse_shape(f"{dtype}[2,3]")
    assert (shape.dtype, shape.dims, shape.layout) == (dtype, (2, 3), None)


def test_a_scalar_has_no_dimensions():
    shape = parse_shape("f32[]")
    assert (shape.dims, shape.dynamic, shape.is_tuple) == ((), (), False)


def test_a_layout_gives_order_tiles_bits_and_space():
    layout = parse_shape("s4[8,128]{1,0:T(64,128)(8,1)L(256)E(4)S(5)}").layout
    assert layout.minor_to_major == (1, 0)
    assert layout.tiles == ((64, 128), (8, 1))
    assert (layout.tail_alignment, layout.element_bits, layout.memory_space) == (256, 4, 5)
    assert layout.text == "1,0:T(64,128)(8,1)L(256)E(4)S(5)"


@pytest.mark.parametrize(
    ("text", "tiles", "space"),
    [
        ("u32[]{:S(2)}", (), 2),
        ("s32[]{:T(128)S(6)}", ((128,),), 6),
        ("f32[4,4]{1,0:T(*,4)}", ((-1, 4),), 0),
        ("f32[4,4]{1,0:D(D,C+~)T(2,2)}", ((2, 2),), 0),
        ("f32[4,4]{1,0:#(u32)*(u16)S(3)}", (), 3),
        ("f32[4,4]{1,0:S(1)SC(1:2,3)(0:1)M(1024)}", (), 1),
        ("f32[4]{0:T(128)P((s32[4], f32[4]{0}))}", ((128,),), 0),
    ],
)
def test_layout_properties_are_told_apart(text, tiles, space):
    shape = parse_shape(text)
    assert (shape.layout.tiles, shape.memory_space) == (tiles, space)


def test_dynamic_dimensions_keep_their_bound():
    shape = parse_shape("f32[<=8,4,?]{2,1,0}")
    assert shape.dims == (8, 4, -1)
    assert shape.dynamic == (True, False, True)


def test_tuples_nest_and_lose_their_index_comments():
    shape = parse_shape("((f32[2]{0}, pred[]), (), /*index=2*/bf16[4], token[])")
    assert [element.dtype for element in shape.elements] == ["tuple", "tuple", "bf16", "token"]
    assert [element.text for element in shape.elements[0].elements] == ["f32[2]{0}", "pred[]"]
    assert "index" not in shape.text


def test_a_buffer_holds_one_shape():
    shape = parse_shape("b(f32[8]{0})")
    assert shape.dtype == "buffer"
    assert [element.text for element in shape.elements] == ["f32[8]{0}"]


def test_space_between_shape_and_layout_is_allowed():
    assert parse_shape(" f32 [2, 3] {1, 0}").layout.minor_to_major == (1, 0)


@pytest.mark.parametrize(
    "text",
    [
        *("", "f32", "f32[", "f32[2,]", "f32[-1]", "f32[2]{1,0}", "(f32[2]", "(f32[2] f32[3])", "f32[2] x"),
        *("f32[2]{0:Q}", "f32[2]{0:S(x)}", "f32[?3]", "b(f32[2]", "(" * 5000),
    ],
)
def test_what_is_no_shape_is_refused_with_a_place(text):
    with pytest.raises(ParseError, match="column"):
        parse_shape(text)


@given(st.text(alphabet="f32[],{}()01:TS<=?b */", max_size=40))
def test_any_text_is_a_shape_or_a_parse_error(text):
    with contextlib.suppress(ParseError):
        parse_shape(text)
