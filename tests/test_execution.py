from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hlotrace.hlo.facts import Facts
from hlotrace.hlo.scalars import Affine, constant, operation
from hlotrace.hlo.tables import module_tables
from hlotrace.hlo.trip_counts import count_trips
from hlotrace.parsers.hlo_text import read_modules


def computations(text: str) -> dict[str, dict]:
    hlo = next(read_modules(text))
    table = module_tables(hlo, module="m", stage="after_optimizations", platform="cpu")["computations"]
    return {row["computation"]: row for row in table.to_pylist()}


def loop(
    *,
    start: str = "constant(0)",
    bound: str = "constant(12)",
    compare: str = "compare(i, k), direction=LT",
    step: str = "add(i, one)",
    one: str = "constant(1)",
    dtype: str = "s32",
    config: str = "",
    extra: str = "",
) -> str:
    """A loop over (i, x) as XLA's text has it."""
    state = f"({dtype}[], f32[64])"
    return f"""HloModule m
{extra}
body {{
  s = {state} parameter(0)
  i = {dtype}[] get-tuple-element(s), index=0
  x = f32[64] get-tuple-element(s), index=1
  one = {dtype}[] {one}
  n = {dtype}[] {step}
  y = f32[64] multiply(x, x)
  ROOT t = {state} tuple(n, y)
}}
cond {{
  s = {state} parameter(0)
  i = {dtype}[] get-tuple-element(s), index=0
  k = {dtype}[] {bound}
  ROOT l = pred[] {compare}
}}
ENTRY main {{
  p = f32[64] parameter(0)
  q = {dtype}[] parameter(1)
  z = {dtype}[] {start}
  t = {state} tuple(z, p)
  ROOT w = {state} while(t), condition=cond, body=body{config}
}}
"""


@pytest.mark.parametrize(
    ("changes", "trips"),
    [
        ({}, 12),
        ({"compare": "compare(i, k), direction=LE"}, 13),
        ({"compare": "compare(i, k), direction=NE"}, 12),
        ({"compare": "compare(k, i), direction=GT"}, 12),
        ({"compare": "compare(k, i), direction=GE"}, 13),
        ({"start": "constant(3)"}, 9),
        ({"start": "constant(12)"}, 0),
        ({"one": "constant(5)"}, 3),
        ({"dtype": "u32"}, 12),
        ({"start": "constant(11)", "bound": "constant(0)", "step": "subtract(i, one)"}, 0),
        (
            {
                "start": "constant(11)",
                "bound": "constant(0)",
                "step": "subtract(i, one)",
                "compare": "compare(i, k), direction=GE",
            },
            12,
        ),
        (
            {
                "start": "constant(11)",
                "one": "constant(-1)",
                "compare": "compare(i, k), direction=GT",
                "bound": "constant(-1)",
            },
            12,
        ),
        # Doubling is no fixed step: it is followed.
        ({"start": "constant(1)", "bound": "constant(1024)", "step": "add(i, i)"}, 10),
        # What depends on data, or never ends, has no count.
        ({"start": "copy(q)"}, None),
        ({"compare": "compare(i, k), direction=GE", "bound": "constant(0)"}, None),
        # What the compiler wrote down is taken.
        ({"start": "copy(q)", "config": ', backend_config={"known_trip_count":{"n":"7"}}'}, 7),
    ],
    ids=str,
)
def test_a_loops_trips_follow_from_its_condition_and_body(changes, trips):
    found = computations(loop(**changes))
    assert found["body"]["trip_count"] == trips
    assert found["body"]["execution_count"] == trips
    assert found["cond"]["execution_count"] == (None if trips is None else trips + 1)
    assert found["cond"]["trip_count"] is None


def test_condition_and_step_may_be_inside_fusions():
    extra = """
less { a = s32[] parameter(0)
  b = s32[] constant(12)
  ROOT c = pred[] compare(a, b), direction=LT
}
next { a = s32[] parameter(0)
  b = s32[] constant(1)
  ROOT c = s32[] add(a, b)
}
"""
    text = loop(compare="fusion(i), kind=kLoop, calls=less", step="fusion(i), kind=kLoop, calls=next", extra=extra)
    assert computations(text)["body"]["trip_count"] == 12


TWO_LOOPS = """HloModule m
inner_body {
  s = (s32[], s32[], f32[8]) parameter(0)
  j = s32[] get-tuple-element(s), index=0
  n = s32[] get-tuple-element(s), index=1
  x = f32[8] get-tuple-element(s), index=2
  one = s32[] constant(1)
  k = s32[] add(j, one)
  y = f32[8] add(x, x)
  ROOT t = (s32[], s32[], f32[8]) tuple(k, n, y)
}
inner_cond {
  s = (s32[], s32[], f32[8]) parameter(0)
  j = s32[] get-tuple-element(s), index=0
  n = s32[] get-tuple-element(s), index=1
  ROOT l = pred[] compare(j, n), direction=LT
}
outer_body {
  s = (s32[], s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] get-tuple-element(s), index=1
  x = f32[8] get-tuple-element(s), index=2
  zero = s32[] constant(0)
  t = (s32[], s32[], f32[8]) tuple(zero, n, x)
  w = (s32[], s32[], f32[8]) while(t), condition=inner_cond, body=inner_body
  m = s32[] get-tuple-element(w), index=1
  y = f32[8] get-tuple-element(w), index=2
  one = s32[] constant(1)
  k = s32[] add(i, one)
  ROOT r = (s32[], s32[], f32[8]) tuple(k, m, y)
}
outer_cond {
  s = (s32[], s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  four = s32[] constant(4)
  ROOT l = pred[] compare(i, four), direction=LT
}
ENTRY main {
  p = f32[8] parameter(0)
  zero = s32[] constant(0)
  five = s32[] constant(5)
  t = (s32[], s32[], f32[8]) tuple(zero, five, p)
  ROOT w = (s32[], s32[], f32[8]) while(t), condition=outer_cond, body=outer_body
}
"""


def test_a_bound_that_is_handed_through_the_state_of_both_loops_is_found_outside():
    found = computations(TWO_LOOPS)
    assert found["outer_body"]["trip_count"] == 4
    assert found["inner_body"]["trip_count"] == 5
    assert found["inner_body"]["execution_count"] == 20
    assert found["inner_cond"]["execution_count"] == 24


ROLES = """HloModule m
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
fused { a = f32[8] parameter(0)
  ROOT c = f32[8] negate(a)
}
helper { a = f32[8] parameter(0)
  ROOT fusing = f32[8] fusion(a), kind=kLoop, calls=fused
}
yes { a = f32[8] parameter(0)
  ROOT calling = f32[8] call(a), to_apply=helper
}
no { a = f32[8] parameter(0)
  ROOT c = f32[8] abs(a)
}
copying { a = f32[8] parameter(0)
  ROOT c = f32[8] copy(a)
}
nobody { a = f32[8] parameter(0)
  ROOT c = f32[8] abs(a)
}
ENTRY main {
  p = f32[8] parameter(0)
  which = pred[] parameter(1)
  z = f32[] constant(0)
  sum = f32[] reduce(p, z), dimensions={0}, to_apply=add
  started = ((f32[8]), f32[8], u32[]) async-start(p), calls=copying
  done = f32[8] async-done(started)
  again = f32[8] call(done), to_apply=helper
  ROOT chosen = f32[8] conditional(which, again, again), true_computation=yes, false_computation=no
}
"""


def test_each_computation_has_a_role_its_first_caller_and_a_count():
    found = computations(ROLES)
    roles = {name: (row["role"], row["caller"], row["execution_count"]) for name, row in found.items()}
    assert roles == {
        "main": ("entry", None, 1),
        "add": ("reducer", "sum", 1),
        "copying": ("async", "started", 1),
        "helper": ("called", "calling", 2),
        "fused": ("fusion", "fusing", 2),
        "yes": ("branch", "chosen", 1),
        "no": ("branch", "chosen", 1),
        "nobody": ("unused", None, 0),
    }


def test_without_an_entry_no_count_is_known():
    hlo = next(read_modules(ROLES))
    columns = Facts(type(hlo)(**{**{name: getattr(hlo, name) for name in hlo.__dataclass_fields__}, "entry": -1}))
    assert set(columns.execution.executions.tolist()) == {-1}
    assert not columns.is_launch.any()


@given(
    start=st.integers(-50, 50),
    bound=st.integers(-50, 50),
    step=st.integers(-7, 7),
    direction=st.sampled_from(["LT", "LE", "GT", "GE", "NE"]),
    mirrored=st.booleans(),
)
def test_the_closed_form_agrees_with_running_the_loop(start, bound, step, direction, mirrored):
    holds = {
        "LT": lambda a, b: a < b,
        "LE": lambda a, b: a <= b,
        "GT": lambda a, b: a > b,
        "GE": lambda a, b: a >= b,
        "NE": lambda a, b: a != b,
    }[direction]
    value, trips = start, 0
    while trips <= 300 and (holds(bound, value) if mirrored else holds(value, bound)):
        value, trips = value + step, trips + 1
    element = Affine((0,))
    operands = [constant(bound), element] if mirrored else [element, constant(bound)]
    condition = operation(direction, operands)
    counted = count_trips(condition, {(0,): Affine((0,), step)}, {(0,): start})
    assert counted == (None if trips > 300 else trips)


_SCANS = """
import json, sys
import jax, jax.numpy as jnp
topology = sys.argv[1]
if topology == "cpu":
    device = jax.devices()[0]
else:
    from jax.experimental import topologies
    device = topologies.get_topology_desc(platform="tpu", topology_name=topology).devices[0]
S = lambda *shape: jax.ShapeDtypeStruct(shape, jnp.bfloat16, sharding=jax.sharding.SingleDeviceSharding(device))
def scan(w, x):
    return jax.lax.scan(lambda x, w: (jnp.tanh(x @ w), None), x, w)[0]
def nested(w, x):
    return jax.lax.fori_loop(3, 8, lambda i, x: scan(w, x), x)
gradient = jax.grad(lambda w, x: scan(w, x).astype(jnp.float32).sum())
for name, function in dict(scan=scan, nested=nested, gradient=gradient).items():
    compiled = jax.jit(function).lower(S(12, 256, 256), S(128, 256)).compile()
    print(json.dumps([name, compiled.as_text()]))
"""
_ONE_LAYER = 2 * 128 * 256 * 256


def _check_scans(output: str) -> None:
    products = {"scan": 12, "nested": 5 * 12, "gradient": 3 * 12}
    seen = 0
    for line in output.splitlines():
        name, text = json.loads(line)
        facts = Facts(next(read_modules(text)))
        runs = facts.execution.executions[facts.graph.computation]
        dots = (facts.products.flops * runs[facts.products.rows]).sum()
        assert dots == products[name] * _ONE_LAYER, name
        total = (facts.flops * runs)[facts.is_launch].sum()
        assert dots <= total < 1.2 * dots, name
        seen += 1
    assert seen == 3


def test_a_scan_over_twelve_layers_reports_twelve_layers_work_on_cpu(cpu_compiler):
    _check_scans(cpu_compiler(_SCANS, "cpu"))


@pytest.mark.tpu_compiler
def test_a_scan_over_twelve_layers_reports_twelve_layers_work_on_tpu(tpu_compiler):
    _check_scans(tpu_compiler(_SCANS, "v5e:2x2"))
