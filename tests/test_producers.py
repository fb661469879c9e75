"""Values without a name of their own are followed to what produced them."""

from __future__ import annotations

import numpy as np
import pytest

from hlotrace.hlo.producers import Producers
from hlotrace.parsers.hlo_text import read_modules


def named(name: str) -> str:
    return f'metadata={{op_name="{name}"}}'


PROGRAM = f"""HloModule m, is_scheduled=true

%fused (a: f32[8]) -> (f32[8], f32[8]) {{
  %a = f32[8] parameter(0)
  %n = f32[8] negate(%a), {named("jit(f)/neg")}
  ROOT %ft = (f32[8], f32[8]) tuple(%a, %n)
}}

%called (x: f32[8]) -> f32[8] {{
  ROOT %x = f32[8] parameter(0)
}}

%body (s: (f32[8], f32[8], f32[8])) -> (f32[8], f32[8], f32[8]) {{
  %s = (f32[8], f32[8], f32[8]) parameter(0)
  %s0 = f32[8] get-tuple-element(%s), index=0
  %s1 = f32[8] get-tuple-element(%s), index=1
  %s2 = f32[8] get-tuple-element(%s), index=2
  %made = f32[8] add(%s0, %s1), {named("jit(f)/while/body/add")}
  %kept = f32[8] copy(%s2)
  ROOT %next = (f32[8], f32[8], f32[8]) tuple(%made, %s1, %kept)
}}

%condition (c: (f32[8], f32[8], f32[8])) -> pred[] {{
  %c = (f32[8], f32[8], f32[8]) parameter(0)
  ROOT %go = pred[] constant(true)
}}

%left (l: f32[8]) -> f32[8] {{
  ROOT %l = f32[8] parameter(0)
}}

%right (r: f32[8]) -> f32[8] {{
  ROOT %r = f32[8] parameter(0)
}}

%inner (i: f32[8]) -> f32[8] {{
  %i = f32[8] parameter(0)
  ROOT %ic = f32[8] cosine(%i), {named("jit(f)/cos")}
}}

ENTRY %main (w: f32[8], p: pred[]) -> f32[8] {{
  %w = f32[8] parameter(0), {named("params['w']")}
  %p = pred[] parameter(1)
  %sine = f32[8] sine(%w), {named("jit(f)/sin")}
  %moved = (f32[8]{{0:S(1)}}, f32[8], u32[]) copy-start(%sine)
  %arrived = f32[8] copy-done(%moved)
  %view = f32[8] bitcast(%arrived)
  %both = (f32[8], f32[8]) fusion(%view), kind=kLoop, calls=%fused
  %first = f32[8] get-tuple-element(%both), index=0
  %second = f32[8] get-tuple-element(%both), index=1
  %init = (f32[8], f32[8], f32[8]) tuple(%sine, %w, %first)
  %loop = (f32[8], f32[8], f32[8]) while(%init), condition=%condition, body=%body
  %l0 = f32[8] get-tuple-element(%loop), index=0
  %l1 = f32[8] get-tuple-element(%loop), index=1
  %l2 = f32[8] get-tuple-element(%loop), index=2
  %call = f32[8] call(%l1), to_apply=%called
  %either = f32[8] conditional(%p, %second, %l0), true_computation=%left, false_computation=%right
  %start = ((f32[8]), f32[8], s32[]) async-start(%w), calls=%inner
  %done = f32[8] async-done(%start), calls=%inner
  %alone = f32[8] constant({{1, 2, 3, 4, 5, 6, 7, 8}})
  %of-alone = f32[8] copy(%alone)
  ROOT %out = f32[8] copy(%done)
}}
"""


@pytest.mark.parametrize(
    ("instruction", "index", "origin"),
    [
        ("sine", (), "sine"),
        ("moved", (0,), "sine"),
        ("moved", (1,), "sine"),
        ("view", (), "sine"),
        ("both", (0,), "sine"),
        ("both", (1,), "n"),
        ("first", (), "sine"),
        ("second", (), "n"),
        ("a", (), "sine"),
        ("init", (1,), "w"),
        ("loop", (0,), "made"),
        ("loop", (1,), "w"),
        ("s", (0,), "made"),
        ("s", (1,), "w"),
        ("s", (2,), "sine"),
        ("kept", (), "sine"),
        ("c", (1,), "w"),
        ("l2", (), "sine"),
        ("call", (), "w"),
        ("x", (), "w"),
        ("either", (), "n"),
        ("r", (), "made"),
        ("start", (1,), "ic"),
        ("i", (), "w"),
        ("out", (), "ic"),
        ("init", (), None),
        ("p", (), None),
        ("of-alone", (), None),
    ],
)
def test_a_value_is_followed_to_the_first_instruction_with_a_name(instruction, index, origin) -> None:
    hlo = next(read_modules(PROGRAM))
    assert not hlo.problems
    names = hlo.names.to_pylist()
    is_named = np.array([name is not None for name in hlo.op_name.to_pylist()])
    found = Producers(hlo, is_named).producer(names.index(instruction), index)
    assert (None if found < 0 else names[found]) == origin


def test_what_goes_round_in_a_circle_has_an_end() -> None:
    text = """HloModule m
%body (s: (f32[8], f32[8])) -> (f32[8], f32[8]) {
  %s = (f32[8], f32[8]) parameter(0)
  %s0 = f32[8] get-tuple-element(%s), index=0
  %s1 = f32[8] get-tuple-element(%s), index=1
  ROOT %t = (f32[8], f32[8]) tuple(%s1, %s0)
}
%cond (c: (f32[8], f32[8])) -> pred[] {
  %c = (f32[8], f32[8]) parameter(0)
  ROOT %go = pred[] constant(true)
}
ENTRY %main (p: (f32[8], f32[8])) -> (f32[8], f32[8]) {
  %p = (f32[8], f32[8]) parameter(0)
  ROOT %w = (f32[8], f32[8]) while(%p), condition=%cond, body=%body
}
"""
    hlo = next(read_modules(text))
    producers = Producers(hlo, np.zeros(hlo.instruction_count, bool))
    assert all(producers.producer(row, (1,)) == -1 for row in range(hlo.instruction_count))
