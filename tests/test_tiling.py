from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hlotrace.hlo.shape_text import parse_shape
from hlotrace.hlo.tiling import ELEMENT_BITS, allocated_bytes, logical_bytes


@pytest.mark.parametrize(
    ("text", "allocated", "logical"),
    [
        ("f32[]{:T(128)}", 512, 4),
        ("f32[]{:T(256)}", 1024, 4),
        ("f32[9,256]{1,0:T(8,128)}", 16384, 9216),
        ("f32[33,256]{1,0:T(8,128)}", 40960, 33792),
        ("f32[256,1]{0,1:T(1,128)}", 1024, 1024),
        ("f32[3,5,7]{2,0,1:T(4,128)}", 5 * 4 * 128 * 4, 420),
        ("bf16[1000]{0:T(1024)(128)(2,1)}", 2048, 2000),
        ("bf16[1,256]{1,0:T(2,128)(2,1)}", 1024, 512),
        ("bf16[1,128]{1,0:T(1,128)(2,1)}", 512, 256),
        ("pred[4,128]{1,0:T(4,128)(4,1)}", 512, 512),
        ("s4[9,256]{1,0:T(8,128)(8,1)E(4)}", 2048, 1152),
        ("s4[9,256]{1,0:T(8,128)(4,1)}", 4096, 1152),
        ("u1[16]{0:E(1)}", 2, 2),
        ("f32[0,5]{1,0:T(8,128)}", 0, 0),
    ],
)
def test_tiles_round_the_dimensions_that_they_cut(text, allocated, logical):
    shape = parse_shape(text)
    assert allocated_bytes(shape) == allocated
    assert logical_bytes(shape) == logical


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("f32[3,5]{1,0}", 60),
        ("f32[3,5]", 60),
        ("c128[2]{0}", 32),
        ("s4[3]{0}", 3),
        ("token[]", 0),
        ("opaque[]", 0),
        ("(f32[2]{0}, (bf16[3]{0}, token[]))", 14),
        ("()", 0),
    ],
)
def test_without_tiles_arrays_are_dense_and_tuples_are_the_sum_of_their_elements(text, size):
    assert allocated_bytes(parse_shape(text)) == size


def test_a_star_joins_a_dimension_to_the_next():
    assert allocated_bytes(parse_shape("f32[3,5,7]{2,1,0:T(*,8,128)}")) == 16 * 128 * 4
    assert allocated_bytes(parse_shape("f32[3,5,7]{2,1,0:T(8,128)}")) == 3 * 8 * 128 * 4


def test_a_tail_alignment_rounds_the_number_of_elements():
    assert allocated_bytes(parse_shape("f32[5]{0:L(8)}")) == 32


def test_bounded_dynamic_arrays_take_their_bound_and_room_for_their_sizes():
    assert allocated_bytes(parse_shape("f32[<=10,16]{1,0:T(8,128)}")) == 8192 + 1024
    assert allocated_bytes(parse_shape("f32[<=10,16]{1,0:T(8,128)M(1024)}")) == 8192 + 1024
    assert allocated_bytes(parse_shape("f32[<=10,16]{1,0}")) == 640 + 8


def test_what_has_no_bound_or_no_known_type_has_no_size():
    for text in ("f32[?,4]", "mystery[4]", "(f32[2], f32[?])"):
        assert allocated_bytes(parse_shape(text)) is None
        assert logical_bytes(parse_shape(text)) is None


@given(
    dtype=st.sampled_from(sorted(set(ELEMENT_BITS) - {"token", "opaque"})),
    dims=st.lists(st.integers(0, 300), min_size=1, max_size=4),
    tile=st.sampled_from(["T(8,128)", "T(8,128)(2,1)", "T(2,128)(2,1)", "T(128)", "T(1024)(128)(4,1)", "T(256)"]),
    order=st.randoms(),
)
def test_padding_never_loses_an_element_and_is_less_than_a_tile_a_dimension(dtype, dims, tile, order):
    minor_to_major = list(range(len(dims)))
    order.shuffle(minor_to_major)
    layout = ",".join(map(str, minor_to_major))
    shape = parse_shape(f"{dtype}[{','.join(map(str, dims))}]{{{layout}:{tile}}}")
    dense = parse_shape(f"{dtype}[{','.join(map(str, dims))}]{{{layout}}}")
    allocated = allocated_bytes(shape)
    assert allocated >= allocated_bytes(dense) >= logical_bytes(shape)
    assert (allocated == 0) == (0 in dims)


_GRID = '''
import sys
import jax, jax.numpy as jnp
from jax.experimental import topologies
jax.config.update("jax_enable_x64", True)
dtypes = """float32 bfloat16 float16 int8 uint8 bool float8_e4m3fn float8_e5m2 float8_e8m0fnu float8_e4m3b11fnuz
    float8_e3m4 float4_e2m1fn int4 uint4 int2 int16 int32 uint32 complex64 int64 float64 complex128""".split()
sizes = [(), (1,), (7,), (128,), (200,), (300,), (1000,), (1025,), (5000,), (1, 1), (1, 256), (2, 100), (3, 128),
    (5, 7), (8, 128), (9, 256), (16, 130), (33, 256), (32, 128), (64, 256), (96, 64), (256, 1), (256, 100), (3, 5, 7),
    (2, 32, 128), (1024, 1, 64), (4, 1, 1), (2, 3, 4, 5), (1, 1, 1, 300), (7, 16, 3, 129), (0, 5), (2, 2, 2, 2, 40)]
for topology in sys.argv[2:]:
    device = topologies.get_topology_desc(platform="tpu", topology_name=topology).devices[0]
    sharding = jax.sharding.SingleDeviceSharding(device)
    arguments = [jax.ShapeDtypeStruct(s, jnp.dtype(d), sharding=sharding) for d in dtypes for s in sizes]
    lowered = jax.jit(lambda *a: jnp.float32(0), keep_unused=True).lower(*arguments)
    dump = sys.argv[1] + "/" + topology.partition(":")[0]
    lowered.compile(compiler_options={"xla_dump_to": dump, "xla_dump_hlo_as_text": True})
'''
_TOPOLOGIES = ("v2:2x2", "v3:2x2", "v4:2x2x1", "v5e:2x2", "v5p:2x2x1", "v6e:2x2", "tpu7x:2x2x1")


@pytest.mark.tpu_compiler
def test_each_parameters_bytes_are_what_the_compiler_allocates_on_all_generations(tpu_compiler, tmp_path):
    tpu_compiler(_GRID, str(tmp_path), *_TOPOLOGIES)
    for topology in _TOPOLOGIES:
        dump = tmp_path / topology.partition(":")[0]
        text = next(dump.glob("*.after_optimizations.txt")).read_text()
        entry = text[text.index("\nENTRY") :]
        shapes = {int(number): shape for shape, number in re.findall(r" = (\S+) parameter\((\d+)\)", entry)}
        assignment = next(dump.glob("*after_optimizations-buffer-assignment.txt")).read_text()
        sizes = re.findall(r"^allocation \d+: size (\d+), (?:.*?)parameter (\d+),", assignment, re.MULTILINE)
        assert len(sizes) == len(shapes) == 22 * 32
        wrong = [
            (topology, shapes[int(number)], allocated_bytes(parse_shape(shapes[int(number)])), int(size))
            for size, number in sizes
            if allocated_bytes(parse_shape(shapes[int(number)])) != int(size)
        ]
        assert wrong == []
