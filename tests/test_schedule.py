from __future__ import annotations

import re
from pathlib import Path

import pytest

from hlotrace.hlo.schedule import flattened_schedule, is_scheduled, schedule_index
from hlotrace.parsers.hlo_text import read_modules

LOOP = """HloModule m, is_scheduled=true
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
fused { d = f32[64] parameter(0)
  ROOT e = f32[64] negate(d)
}
slicing { f = f32[64] parameter(0)
  ROOT g = f32[8] slice(f), slice={[0:8]}
}
body {
  s = (s32[], f32[64]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[64] get-tuple-element(s), index=1
  one = s32[] constant(1)
  n = s32[] add(i, one)
  y = f32[64] fusion(x), kind=kLoop, calls=fused
  ROOT t = (s32[], f32[64]) tuple(n, y)
}
cond {
  u = (s32[], f32[64]) parameter(0)
  j = s32[] get-tuple-element(u), index=0
  k = s32[] constant(12)
  ROOT l = pred[] compare(j, k), direction=LT
}
ENTRY main {
  p = f32[64] parameter(0)
  z = s32[] constant(0)
  start = ((f32[64]), f32[8], s32[]) async-start(p), calls=slicing
  v = (s32[], f32[64]) tuple(z, p)
  w = (s32[], f32[64]) while(v), condition=cond, body=body
  done = f32[8] async-done(start)
  q = f32[] constant(0)
  ROOT r = f32[] reduce(done, q), dimensions={0}, to_apply=add
}
"""


def names(hlo, rows) -> str:
    return " ".join(hlo.names[row].as_py() for row in rows.tolist())


def test_what_control_flow_enters_stands_before_it_conditions_before_bodies():
    hlo = next(read_modules(LOOP))
    assert names(hlo, flattened_schedule(hlo)) == "p z f g start v u j k l s i x one n y t w done q r"


def test_members_of_fusions_and_reducers_have_no_position():
    hlo = next(read_modules(LOOP))
    positions = dict(zip(hlo.names.to_pylist(), schedule_index(hlo).tolist(), strict=True))
    assert [positions[name] for name in ("a", "c", "d", "e")] == [-1] * 4
    assert [positions[name] for name in ("p", "start", "w", "r")] == [0, 4, 17, 20]


def test_a_computation_that_is_called_twice_stands_where_it_is_called_first():
    text = """HloModule m, is_scheduled=true
f { a = f32[] parameter(0)
  ROOT b = f32[] negate(a)
}
ENTRY main { p = f32[] parameter(0)
  x = f32[] call(p), to_apply=f
  ROOT y = f32[] call(x), to_apply=f
}
"""
    hlo = next(read_modules(text))
    assert names(hlo, flattened_schedule(hlo)) == "p a b x y"


def test_branches_stand_in_their_order():
    text = """HloModule m, is_scheduled=true
f { a = f32[] parameter(0)
  ROOT b = f32[] negate(a)
}
g { c = f32[] parameter(0)
  ROOT d = f32[] abs(c)
}
ENTRY main { p = f32[] parameter(0)
  i = s32[] parameter(1)
  ROOT y = f32[] conditional(i, p, p), branch_computations={g, f}
}
"""
    hlo = next(read_modules(text))
    assert names(hlo, flattened_schedule(hlo)) == "p i c d a b y"


def test_a_module_that_states_no_schedule_has_no_positions():
    hlo = next(read_modules(LOOP.replace(", is_scheduled=true", "")))
    assert not is_scheduled(hlo)
    assert set(schedule_index(hlo).tolist()) == {-1}


_PROGRAM = """
import sys
import jax, jax.numpy as jnp
topology, dump = sys.argv[1:]
if topology == "cpu":
    device = jax.devices()[0]
else:
    from jax.experimental import topologies
    device = topologies.get_topology_desc(platform="tpu", topology_name=topology).devices[0]
S = lambda *shape: jax.ShapeDtypeStruct(shape, jnp.bfloat16, sharding=jax.sharding.SingleDeviceSharding(device))
def function(w, x):
    x = jax.lax.scan(lambda x, w: (jnp.tanh(x @ w), x.sum()), x, w)[0]
    return jax.lax.cond(x[0, 0] > 0, lambda x: jax.nn.softmax(x) @ x.T, lambda x: (x @ x.T) * 2, x)
options = {"xla_dump_to": dump, "xla_dump_hlo_as_text": True}
gradient = jax.grad(lambda w, x: function(w, x).astype(jnp.float32).sum())
jax.jit(gradient).lower(S(4, 512, 512), S(1024, 512)).compile(compiler_options=options)
"""


def _check_dump(folder: Path) -> None:
    """Our order of the program that was assigned is the one that the live ranges list."""
    listed = next(folder.glob("*live-range.txt")).read_text().partition("BufferLiveRange")[0]
    expected = re.findall(r"^ +\d+:(.*)$", listed, re.MULTILINE)
    text = next(path for path in folder.glob("*after_optimizations.txt")).read_text()
    hlo = next(read_modules(text))
    ours = names(hlo, flattened_schedule(hlo)).split(" ")
    if "#" in text:
        # Newer texts leave out elements of tuples, which the list still has.
        known = set(hlo.names.to_pylist())
        expected = [name for name in expected if name in known]
    assert ours == expected
    assert len(ours) > 60


def test_the_order_is_the_live_ranges_own_on_cpu(cpu_compiler, tmp_path):
    cpu_compiler(_PROGRAM, "cpu", str(tmp_path))
    _check_dump(tmp_path)


@pytest.mark.tpu_compiler
def test_the_order_is_the_live_ranges_own_on_tpu(tpu_compiler, tmp_path):
    tpu_compiler(_PROGRAM, "v5e:2x2", str(tmp_path))
    _check_dump(tmp_path)
