"""Our own liveness: the live ranges of XLA's dumps, value by value, and small modules worked out by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from hlotrace.hlo.assignment import CATEGORIES
from hlotrace.hlo.liveness import Liveness
from hlotrace.parsers.hlo_text import read_modules
from hlotrace.parsers.live_range import read_live_ranges

HERE = Path(__file__).parent
DUMPED = sorted((HERE / "data").glob("*/*-live-range.txt"))

Ranges = dict[str, tuple[int, int]]


def liveness(text: str) -> Liveness:
    (hlo,) = read_modules(text, place="f.txt")
    return Liveness(hlo)


def by_value(ranges) -> Ranges:  # type: ignore[no-untyped-def]
    names = map("".join, zip(ranges.instruction, ranges.shape_index, strict=True))
    return dict(zip(names, zip(ranges.start.tolist(), ranges.end.tolist(), strict=True), strict=True))


def shared(model: Liveness) -> dict[str, tuple[str, set[str]]]:
    """For each value the category of its buffer, and all values that share the buffer."""
    found = model.assignment()
    names = [a + b for a, b in zip(found.instruction.to_pylist(), found.shape_index.to_pylist(), strict=True)]
    groups = {}
    for row, (start, stop) in enumerate(zip(found.value_start[:-1], found.value_start[1:], strict=True)):
        group = (CATEGORIES[found.category[row]], set(names[start:stop]))
        groups |= dict.fromkeys(names[start:stop], group)
    return groups


@pytest.mark.parametrize("path", DUMPED, ids=lambda path: path.parent.name)
def test_every_live_range_is_xlas(path: Path) -> None:
    dumped = read_live_ranges(path.read_text())
    model = liveness(path.with_name(path.name.replace("-live-range", "")).read_text())
    ours = model.ranges()
    assert ours.schedule == dumped.schedule
    assert by_value(ours) == by_value(dumped)


def test_a_value_lives_from_its_definition_to_its_last_use_and_arguments_and_results_to_the_end() -> None:
    model = liveness("""HloModule m, is_scheduled=true

ENTRY e {
  p = f32[8]{0} parameter(0)
  a = f32[8]{0} negate(p)
  b = f32[8]{0} add(a, a)
  ROOT c = f32[8]{0} multiply(b, p)
}
""")
    assert by_value(model.ranges()) == {"p{}": (0, 4), "a{}": (1, 2), "b{}": (2, 3), "c{}": (3, 4)}
    assert {value: category for value, (category, _) in shared(model).items()} == {
        "p{}": "argument",
        "a{}": "temp",
        "b{}": "temp",
        "c{}": "output",
    }


LOOP = """HloModule m, is_scheduled=true

body {
  s = (s32[], f32[8]{0}, f32[4]{0}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  next = s32[] add(i, one)
  x = f32[8]{0} get-tuple-element(s), index=1
  y = f32[8]{0} negate(x)
  w = f32[4]{0} get-tuple-element(s), index=2
  ROOT out = (s32[], f32[8]{0}, f32[4]{0}) tuple(next, y, w)
}

condition {
  t = (s32[], f32[8]{0}, f32[4]{0}) parameter(0)
  j = s32[] get-tuple-element(t), index=0
  limit = s32[] constant(9)
  ROOT less = pred[] compare(j, limit), direction=LT
}

ENTRY e {
  p = f32[8]{0} parameter(0)
  q = f32[4]{0} parameter(1)
  zero = s32[] constant(0)
  i0 = s32[] copy(zero)
  x0 = f32[8]{0} copy(p)
  state = (s32[], f32[8]{0}, f32[4]{0}) tuple(i0, x0, q)
  loop = (s32[], f32[8]{0}, f32[4]{0}) while(state), condition=condition, body=body
  ROOT r = f32[8]{0} get-tuple-element(loop), index=1
}
"""


def test_what_a_loop_changes_shares_a_buffer_and_what_it_passes_on_is_one_value() -> None:
    model = liveness(LOOP)
    groups = shared(model)
    assert groups["x0{}"] == ("output", {"x0{}", "t{1}", "s{1}", "y{}", "loop{1}"})
    assert groups["i0{}"] == ("temp", {"i0{}", "t{0}", "s{0}", "next{}", "loop{0}"})
    assert groups["q{}"] == ("argument", {"q{}"})
    assert groups["zero{}"][0] == "constant"
    ranges = by_value(model.ranges())
    assert "s{2}" not in ranges
    at = {name: place for place, name in enumerate(model.ranges().schedule)}
    assert at["less"] < at["s"] < at["out"] < at["loop"] < at["r"]
    assert ranges["y{}"] == (at["y"], at["out"] + 1)
    assert ranges["x0{}"] == (at["x0"], at["t"])


def test_an_update_in_place_and_a_donated_argument_share_their_buffer() -> None:
    model = liveness("""HloModule m, is_scheduled=true, input_output_alias={ {0}: (0, {}, may-alias) }

fused {
  a = f32[8,4]{1,0} parameter(0)
  b = f32[1,4]{1,0} parameter(1)
  z = s32[] parameter(2)
  ROOT u = f32[8,4]{1,0} dynamic-update-slice(a, b, z, z)
}

ENTRY e {
  p = f32[8,4]{1,0} parameter(0)
  v = f32[1,4]{1,0} parameter(1)
  i = s32[] parameter(2)
  c = f32[8,4]{1,0} copy(p)
  d = f32[8,4]{1,0} dynamic-update-slice(c, v, i, i)
  f = f32[8,4]{1,0} fusion(d, v, i), kind=kLoop, calls=fused
  n = f32[8,4]{1,0} negate(f)
  ROOT t = (f32[8,4]{1,0}, f32[8,4]{1,0}) tuple(n, f)
}
""")
    groups = shared(model)
    assert groups["f{}"] == ("output", {"c{}", "d{}", "f{}"})
    assert groups["n{}"] == ("alias", {"p{}", "n{}"})
    ranges = by_value(model.ranges())
    assert ranges["p{}"] == (0, 3)


def test_an_element_that_is_named_in_place_is_used_alone() -> None:
    model = liveness("""HloModule m, is_scheduled=true

fused {
  a = f32[8]{0} parameter(0)
  n = f32[8]{0} negate(a)
  s = f32[8]{0} sine(a)
  ROOT t = (f32[8]{0}, f32[8]{0}) tuple(n, s)
}

ENTRY e {
  p = f32[8]{0} parameter(0)
  f = (f32[8]{0}, f32[8]{0}) fusion(p), kind=kLoop, calls=fused
  a = f32[8]{0} negate(f#0)
  ROOT b = f32[8]{0} add(f#1, a)
}
""")
    ranges = by_value(model.ranges())
    assert (ranges["f{0}"], ranges["f{1}"]) == ((1, 2), (1, 3))


def test_sizes_and_spaces_come_from_the_layouts() -> None:
    model = liveness("""HloModule m, is_scheduled=true

ENTRY e {
  p = bf16[9,100]{1,0:T(8,128)(2,1)} parameter(0)
  ROOT c = bf16[9,100]{1,0:T(8,128)(2,1)S(1)} copy(p)
}
""")
    found = model.assignment()
    assert found.size.tolist() == [16 * 128 * 2] * 2
    assert sorted(found.color.tolist()) == [0, 1]


def test_a_module_without_a_schedule_has_no_live_ranges() -> None:
    with pytest.raises(ValueError, match="no schedule"):
        liveness("HloModule m\n\nENTRY e {\n  ROOT p = f32[] parameter(0)\n}\n")


def test_a_barrier_passes_on_what_it_is_given() -> None:
    model = liveness("""HloModule m, is_scheduled=true

ENTRY e {
  p = f32[8]{0} parameter(0)
  a = f32[8]{0} negate(p)
  b = f32[8]{0} opt-barrier(a)
  ROOT c = f32[8]{0} add(b, b)
}
""")
    assert by_value(model.ranges()) == {"p{}": (0, 4), "a{}": (1, 3), "c{}": (3, 4)}
