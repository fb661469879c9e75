"""HLO text of every era: one case a piece of grammar, files of many modules, errors with a place."""

from __future__ import annotations

import contextlib
import random
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hlotrace.errors import ParseError
from hlotrace.hlo.module import CALL_ROLES
from hlotrace.parsers.hlo_text import parse, parse_all, read_modules

if TYPE_CHECKING:
    from hlotrace.hlo.module import HloModule

MODULE = """HloModule jit_f, is_scheduled=true, entry_computation_layout={(f32[2]{0})->f32[2]{0}}, num_partitions=4

%add.clone (x: f32[], y: f32[]) -> f32[] {
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %sum = f32[] add(%x, %y)
}

ENTRY %main (p: f32[2]) -> f32[2] {
  %p = f32[2]{0:T(128)} parameter(0), sharding={devices=[2]<=[2]}, metadata={op_name="w[\\'a\\']"}
  %c = f32[] constant(1.5)
  ROOT %r = f32[2]{0} all-reduce(%p), channel_id=1, to_apply=%add.clone, \
metadata={op_name="f/x" source_file="a.py" source_line=7}, backend_config={"k":{"s":"}"}}
}
"""


def one(text: str) -> HloModule:
    (module,) = read_modules(text)
    return module


class Row(NamedTuple):
    name: str
    opcode: str
    shape: str
    operands: list[str]
    called: list[tuple[str, str]]
    attributes: str


def rows(module: HloModule, computation: str) -> list[Row]:
    number = module.computation_names.index(computation)

    def row(at: int) -> Row:
        edges = range(module.operand_start[at], module.operand_start[at + 1])
        calls = range(module.called_start[at], module.called_start[at + 1])
        return Row(
            module.names[at].as_py(),
            module.opcodes[module.opcode[at]],
            module.shapes[module.shape[at]].text,
            [
                ("?" if module.operand[edge] < 0 else module.names[module.operand[edge]].as_py())
                + (f"#{module.operand_element[edge]}" if module.operand_element[edge] >= 0 else "")
                for edge in edges
            ],
            [(CALL_ROLES[module.called_role[at]], module.computation_names[module.called[at]]) for at in calls],
            module.raw_attributes[at].as_py(),
        )

    return [row(at) for at in range(module.computation_start[number], module.computation_start[number + 1])]


def instruction(line: str, before: str = "") -> Row:
    """The row of the last of some instructions, in a computation that has operands a, b (f32[2,3]) and t (a tuple)."""
    text = f"""HloModule m
f {{
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}}
g {{
  x = f32[2,3] parameter(0)
  ROOT n = f32[2,3] negate(x)
}}
ENTRY e {{
  a = f32[2,3] parameter(0)
  b = f32[2,3] parameter(1)
  t = (f32[2,3], s32[]) parameter(2)
  z = f32[] constant(0)
  {before}
  {line}
}}"""
    return rows(one(text), "e")[-1]


def test_a_module_is_read_with_all_its_columns() -> None:
    module = one(MODULE)
    assert module.name == "jit_f"
    assert module.attributes == {
        "is_scheduled": "true",
        "entry_computation_layout": "{(f32[2]{0})->f32[2]{0}}",
        "num_partitions": "4",
    }
    assert module.computation_names == ("add.clone", "main")
    assert module.entry == 1
    assert module.computation_line.tolist() == [3, 9]
    assert module.computation_root.tolist() == [2, 5]
    assert module.line.tolist() == [4, 5, 6, 10, 11, 12]
    assert module.parameter_number.tolist() == [0, 1, -1, 0, -1, -1]
    assert module.literal.to_pylist() == [None, None, None, None, "1.5", None]
    assert module.op_name.to_pylist()[3:] == ["w['a']", None, "f/x"]
    assert module.source_file.to_pylist()[5] == "a.py"
    assert module.source_line.tolist()[4:] == [-1, 7]
    assert module.backend_config.to_pylist() == [None] * 5 + ['{"k":{"s":"}"}}']
    assert module.raw_attributes.to_pylist()[3:] == [
        "sharding={devices=[2]<=[2]}",
        "",
        "channel_id=1, to_apply=%add.clone",
    ]
    assert module.problems == ()


LINES = [
    # instruction, opcode, shape, operands, calls, attributes
    ("r = f32[2,3] add(a, b)", "add", "f32[2,3]", ["a", "b"], [], ""),
    ("%r = f32[2,3]{1,0} add(%a, %b)", "add", "f32[2,3]{1,0}", ["a", "b"], [], ""),
    ("ROOT %r = f32[2,3] add(f32[2,3]{1,0} %a, f32[2,3] b)", "add", "f32[2,3]", ["a", "b"], [], ""),
    ("r = f32[2,3] copy(%t#0)", "copy", "f32[2,3]", ["t#0"], [], ""),
    ("r = f32[2,3] copy(t#0)", "copy", "f32[2,3]", ["t#0"], [], ""),
    ("r = f32[2,3] copy((f32[2,3], /*index=1*/s32[]) %t#0)", "copy", "f32[2,3]", ["t#0"], [], ""),
    ("r = (f32[2,3], /*index=1*/f32[2,3]) tuple(a, /*index=1*/b)", "tuple", "(f32[2,3], f32[2,3])", ["a", "b"], [], ""),
    ("r = b(f32[2]{0}) custom-call(a), x=1", "custom-call", "b(f32[2]{0})", ["a"], [], "x=1"),
    ("r = f32[<=2,?]{1,0} foo(a), y", None, None, None, None, None),
    ("r = f32[<=2,?]{1,0} foo(a)", "foo", "f32[<=2,?]{1,0}", ["a"], [], ""),
    ("r = s4[8]{0:T(64,128)(8,1)E(4)S(5)} foo()", "foo", "s4[8]{0:T(64,128)(8,1)E(4)S(5)}", [], [], ""),
    ("r = s32[4]{0} iota(), iota_dimension=0", "iota", "s32[4]{0}", [], [], "iota_dimension=0"),
    ("r = f32[] reduce(a, z), dimensions={0,1}, to_apply=f", "reduce", "f32[]", ["a", "z"], [("to_apply", "f")], None),
    ("r = f32[2,3] fusion(a), kind=kLoop, calls=%g", "fusion", "f32[2,3]", ["a"], [("calls", "g")], None),
    ("r = f32[2,3] foo(a), branch_computations={%g, %f}", "foo", "f32[2,3]", ["a"], "ordered", None),
    ("r = f32[2,3] foo(a), true_computation=g, false_computation=%f", "foo", "f32[2,3]", ["a"], "both", None),
    ("r = f32[2,3] foo(a), condition=f, body=g", "foo", "f32[2,3]", ["a"], [("condition", "f"), ("body", "g")], None),
    ("r = f32[2,3] foo(a), select=f, scatter=g", "foo", "f32[2,3]", ["a"], [("select", "f"), ("scatter", "g")], None),
    ("r = f32[2,3] foo(a), called_computations={}", "foo", "f32[2,3]", ["a"], [], "called_computations={}"),
]


@pytest.mark.parametrize(("line", "opcode", "shape", "operands", "called", "attributes"), LINES)
def test_an_instruction_says(
    line: str, opcode: str | None, shape: str, operands: list[str], called: object, attributes: str | None
) -> None:
    if opcode is None:
        with pytest.raises(ParseError, match=r"<text>:\d+:\d+: expected an attribute"):
            instruction(line)
        return
    row = instruction(line)
    assert (row.name, row.opcode, row.shape, row.operands) == ("r", opcode, shape, operands)
    expected = {
        "ordered": [("branch_computations", "g"), ("branch_computations", "f")],
        "both": [("true_computation", "g"), ("false_computation", "f")],
    }
    assert row.called == (expected[called] if isinstance(called, str) else called)
    assert attributes is None or row.attributes == attributes


ATTRIBUTES = [
    "sharding={{devices=[2,1]<=[2]}, {replicated}}",
    "sharding={mesh['a'=2,'b'=4], [{'a'}, {?}]}",
    'sharding={maximal device=0 metadata={op_name="a, b=c"}}',
    "replica_groups={{0,1},{2,3}}",
    "replica_groups=[4,2]<=[2,4]T(1,0)",
    "replica_groups=mesh['x'=4,'y'=4], device_ids=([4,4]T(1,0)) {'x'}, dimensions={0}",
    "replica_groups=mesh['x'=4,'y'=4] {'x'}",
    "source_target_pairs={{0,1},{1,0}}, channel_id=1",
    "control-predecessors={%a, %b}",
    'origin={({"a" {0}}, {"b"})}',
    "window={size=3x3 pad=1_1x1_1 rhs_reversal=1x1}, dim_labels=b01f_01io->b01f",
    "dim_labels=?b01f_?01io->?b01f, feature_group_count=1",
    "padding=0_0_0x-1_2_1, slice={[0:1], [2:3:2]}",
    'custom_call_target="a \\"quoted\\" }{ name", api_version=API_VERSION_TYPED_FFI',
    'frontend_attributes={_x="{{1,0}}",config={"a":"}","b":[1,{}]}}',
    "literal=pred[] true, x=-1e-05",
    "literal=s32[2] {1,2}, y=inf",
    "output_to_operand_aliasing={{0}: (0, {}), {1}: (1, {0})}",
    'domain={kind="sharding", entry={maximal device=0}, exit={}}',
    "result_accuracy={tolerance={atol=0,rtol=4,ulps=2}}",
    'outfeed_shape=(f32[2]{0}, s32[]), outfeed_config="a\nb"',
    "statistics={visualizing_index=1,a=0.5}",
    "something_new=[{(1}, 'x}'])] -> y, other=%z",
]


@pytest.mark.parametrize("attributes", ATTRIBUTES[:-1])
def test_attributes_are_kept_as_they_stand(attributes: str) -> None:
    metadata = 'metadata={op_name="n" stack_frame_id=3}'
    assert instruction(f"r = f32[2] foo(a), {attributes}\n  q = f32[2] copy(a)").name == "q"
    for line in (f"r = f32[2] foo(a), {attributes}, {metadata}", f"r = f32[2] foo(a), {metadata}, {attributes}"):
        assert instruction(line).attributes == attributes
    split = f'r = f32[2] foo(a), first=1, {metadata}, {attributes}, backend_config="z"'
    assert instruction(split).attributes == f"first=1, {attributes}"


def test_metadata_that_has_no_column_is_kept_as_text() -> None:
    line = 'r = f32[2] foo(a), metadata={op_type="aten__mm" op_name="mm" source_line=3}, x=1'
    assert instruction(line).attributes == 'metadata={op_type="aten__mm" op_name="mm" source_line=3}, x=1'


CONFIGS = [
    ('{"a":"}{","b":{"c":[1,2]}}', '{"a":"}{","b":{"c":[1,2]}}'),
    ('"{\\"a\\": \\"b\\"}"', '{"a": "b"}'),
    ('{grid = array<i32: 1>, name = "it\'s"}', '{grid = array<i32: 1>, name = "it\'s"}'),
    ('"raw\nnewline\\n\\ttab\\x41\\101"', "raw\nnewline\n\ttabAA"),
    ('"\\303\\251"', "é"),
    ('"\\201x"', "\\x81x"),
]


@pytest.mark.parametrize(("written", "read"), CONFIGS)
def test_a_backend_config_is_json_a_dictionary_or_an_escaped_string(written: str, read: str) -> None:
    module = one(f"e {{\n a = f32[2] parameter(0)\n ROOT r = f32[2] foo(a), backend_config={written}\n}}")
    assert module.backend_config.to_pylist() == [None, read]
    assert module.raw_attributes.to_pylist() == ["", ""]


def test_an_op_name_may_hold_json_and_newlines_and_quotes() -> None:
    text = 'e {\n ROOT a = f32[2] parameter(0), metadata={op_name="{\\"k\\": [1, \\"}\\"],\n}" source_line=2}\n}'
    module = one(text)
    assert module.op_name.to_pylist() == ['{"k": [1, "}"],\n}']
    assert module.source_line.tolist() == [2]


def test_a_raw_newline_counts_as_a_line() -> None:
    module = one('e {\n a = f32[2] parameter(0), x="1\n2\n3"\n ROOT b = f32[2] copy(a)\n}')
    assert module.line.tolist() == [2, 5]


def test_literals_keep_their_text() -> None:
    text = (
        "e {\n a = c64[2] constant({(1, 2), (nan, -inf)})\n ROOT b = f32[1,2] constant({ { /*i0=0*/ 1, ... } }), x=1\n}"
    )
    assert one(text).literal.to_pylist() == ["{(1, 2), (nan, -inf)}", "{ { /*i0=0*/ 1, ... } }"]


FRAMES = """HloModule m
FileNames
1 "a.py"
2 "dir/b \\"q\\".py"

FunctionNames
1 "f"

FileLocations
1 {file_name_id=1 function_name_id=1 line=3 end_line=3 column=4 end_column=5}
2 {file_name_id=2 function_name_id=1 line=9 end_line=9 column=1 end_column=2}

StackFrames
1 {file_location_id=1 parent_frame_id=1}
2 {file_location_id=2 parent_frame_id=2}

ENTRY e {
  ROOT a = f32[] parameter(0), metadata={stack_frame_id=2}
}
"""


def test_stack_frames_are_read_and_a_parent_of_one_is_none() -> None:
    module = one(FRAMES)
    assert module.frames is not None
    assert module.frames.file_names == ("a.py", 'dir/b "q".py')
    assert module.frames.locations[1].tolist() == [2, 1, 9, 9, 1, 2]
    assert module.frames.stack.tolist() == [[1, 0], [2, 1]]
    assert module.stack_frame.tolist() == [2]


def test_frames_of_an_older_kind_give_the_parent_itself() -> None:
    older = FRAMES.replace("parent_frame_id=1}", "parent_frame_id=0}").replace(
        "parent_frame_id=2}", "parent_frame_id=1}"
    )
    module = one(older)
    assert module.frames is not None
    assert module.frames.stack.tolist() == [[1, 0], [2, 1]]


# What XLA's parser makes of texts that leave something out.


def test_instructions_in_place_of_operands_get_names() -> None:
    text = "e {\n a = f32[2] parameter(0)\n ROOT r = f32[2] add(f32[2] negate(a), add(a, add(a, a)))\n}"
    assert [(row.name, row.opcode, row.operands) for row in rows(one(text), "e")] == [
        ("a", "parameter", []),
        ("negate.anon", "negate", ["a"]),
        ("add.anon", "add", ["a", "a"]),
        ("add.anon.1", "add", ["a", "add.anon"]),
        ("r", "add", ["negate.anon", "add.anon.1"]),
    ]


def test_computations_in_place_of_names_stand_before_their_caller() -> None:
    text = """HloModule m
ENTRY e {
  a = f32[2] parameter(0)
  ROOT r = f32[2] fusion(a), kind=kLoop, calls={
    x = f32[2] parameter(0)
    ROOT n = f32[2] fusion(x), kind=kLoop, calls={ y = f32[2] parameter(0)
      ROOT m = f32[2] negate(y) }, x=1
  }, backend_config={"a":1}
}"""
    module = one(text)
    assert module.computation_names == ("_", "_.1", "e")
    assert [row.called for row in rows(module, "e")] == [[], [("calls", "_.1")]]
    assert [row.called for row in rows(module, "_.1")] == [[], [("calls", "_")]]
    assert module.computation_names[module.entry] == "e"
    assert module.backend_config.to_pylist()[-1] == '{"a":1}'


def test_a_list_of_computations_may_hold_some_in_place() -> None:
    row = instruction("r = f32[2,3] foo(a), branch_computations={%g, { x = f32[] parameter(0) }, f}, y=1")
    assert row.called == [("branch_computations", name) for name in ("g", "_", "f")]


def test_names_are_unique_in_the_module_as_xla_makes_them() -> None:
    text = """HloModule m
f { p = f32[] parameter(0)
 ROOT q.1 = f32[] negate(p) }
ENTRY e { p = f32[] parameter(0)
 q.1 = f32[] negate(p)
 ROOT q.01 = f32[] negate(q.1) }"""
    module = one(text)
    assert [row.name for row in rows(module, "f")] == ["p", "q.1"]
    assert [(row.name, row.operands) for row in rows(module, "e")] == [
        ("p.1", []),
        ("q.0", ["p.1"]),
        ("q.2", ["q.0"]),
    ]


@pytest.mark.parametrize(
    ("text", "name", "names"),
    [
        ("e { p = f32[2] parameter(0) }", "module_e", ["p"]),
        ("ENTRY e { p = f32[2] parameter(0) }", "module_e", ["p"]),
        ("add = f32[2] add(f32[2] a, f32[2] b)", "_", ["a", "b", "add"]),
        ("f32[2] add(f32[2], f32[2])", "_", ["_0", "_1", "_"]),
        ("ROOT %s = f32[2]{0} add(f32[2] %a, f32[2] %a), x=1", "_", ["a", "s"]),
    ],
)
def test_a_text_without_header_or_computation_is_read(text: str, name: str, names: list[str]) -> None:
    module = one(text)
    assert module.name == name
    assert module.names.to_pylist() == names


def test_without_entry_the_last_computation_is_it() -> None:
    module = one("f { p = f32[] parameter(0) }\n g { p = f32[] parameter(0) }")
    assert module.computation_names[module.entry] == "g"


def test_without_root_the_last_instruction_is_it() -> None:
    module = one("e { a = f32[] parameter(0)\n b = f32[] add(a, negate(a)) }")
    assert module.names[module.computation_root[0]].as_py() == "b"


SHAPES = [
    ("r = add(a, b)", "f32[2,3]"),
    ("r = compare(a, b), direction=LT", "pred[2,3]"),
    ("r = tuple(a, t)", "(f32[2,3], (f32[2,3], s32[]))"),
    ("r = get-tuple-element(t), index=1", "s32[]"),
    ("r = transpose(a), dimensions={1,0}", "f32[3,2]{0,1}"),
    ("r = dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={1}", "f32[2,2]"),
    ("r = reduce(a, z), dimensions={0}, to_apply=f", "f32[3]"),
    ("r = reduce-window(a, z), window={size=1x2 stride=1x1}, to_apply=f", "f32[2,2]"),
    ("r = pad(a, z), padding=1_1_0x0_0_2", "f32[4,7]"),
    ("r = concatenate(a, b), dimensions={1}", "f32[2,6]"),
    ("r = call(a), to_apply=g", "f32[2,3]"),
    ("r = while(t), condition=f, body=g", "(f32[2,3], s32[])"),
    ("r = select(a, b, b)", "f32[2,3]"),
    ("r = sort(a, b), dimensions={0}, to_apply=f", "(f32[2,3], f32[2,3])"),
    ("r = after-all()", "token[]"),
]


@pytest.mark.parametrize(("line", "shape"), SHAPES)
def test_a_shape_that_is_left_out_is_inferred(line: str, shape: str) -> None:
    assert instruction(line).shape == shape


def test_a_convolution_s_shape_is_inferred_from_labels_and_window() -> None:
    text = """e {
  x = bf16[2,8,8,3] parameter(0)
  k = bf16[3,3,3,16] parameter(1)
  ROOT c = convolution(x, k), window={size=3x3 stride=2x2 pad=1_1x1_1}, dim_labels=b01f_01io->b01f
}"""
    assert rows(one(text), "e")[-1].shape == "bf16[2,4,4,16]"


def test_a_shape_that_does_not_follow_is_an_error() -> None:
    with pytest.raises(ParseError, match=r"<text>:3:7: expected a shape: that of this 'custom-call'"):
        one('e {\n a = f32[] parameter(0)\n ROOT r = custom-call(a), custom_call_target="x"\n}')


def test_short_asynchronous_forms_become_what_xla_makes_of_them() -> None:
    text = """HloModule m
f { p = f32[2] parameter(0)
 ROOT n = f32[2] negate(p) }
ENTRY e {
  a = f32[2] parameter(0)
  s = ((f32[2]), f32[2], u32[]) call-start(a), to_apply=f, async_execution_thread="sparsecore"
  u = ((f32[2]), f32[2], u32[]) call-update(s)
  ROOT d = f32[2] call-done(u)
}"""
    module = one(text)
    assert module.computation_names == ("f", "async_wrapped", "e")
    wrapped = rows(module, "async_wrapped")
    assert [(row.name, row.opcode, row.shape, row.operands) for row in wrapped] == [
        ("async_param", "parameter", "f32[2]", []),
        ("call", "call", "f32[2]", ["async_param"]),
    ]
    assert wrapped[1].called == [("to_apply", "f")]
    assert [(row.opcode, row.called) for row in rows(module, "e")] == [
        ("parameter", []),
        ("async-start", [("calls", "async_wrapped")]),
        ("async-update", []),
        ("async-done", []),
    ]


def test_long_asynchronous_forms_run_their_computation_once() -> None:
    before = "s = ((f32[2,3]), f32[2,3], u32[]) async-start(a), calls=g"
    assert instruction("r = f32[2,3] async-done(s), calls=g", before).called == []
    assert instruction(before).called == [("calls", "g")]


def test_a_native_pair_stays_as_it_is() -> None:
    before = "s = f32[2,3] all-reduce-start(a), to_apply=f"
    assert instruction("r = f32[2,3] all-reduce-done(s)", before).opcode == "all-reduce-done"
    assert instruction(before).opcode == "all-reduce-start"


def test_a_send_s_result_follows_from_its_operand_and_flags_keep_their_memory() -> None:
    text = "e {{\n t = token[] after-all()\n a = f32[2] parameter(0)\n ROOT s = {} send(a, t), channel_id=1\n}}"
    right = one(text.format("(f32[2], u32[]{:S(2)}, token[])"))
    assert right.shapes[right.shape[-1]].elements[1].memory_space == 2
    assert right.problems == ()
    wrong = one(text.format("(f32[9], token[])"))
    assert wrong.shapes[wrong.shape[-1]].text == "(f32[2], u32[], token[])"
    assert [place for place, _, _ in wrong.problems] == ["<text>:4:7"]


# What XLA rejects and we can understand.


def test_operands_defined_later_are_found_and_unknown_ones_become_problems() -> None:
    module = one("e {\n ROOT r = f32[] add(a, nowhere)\n a = f32[] parameter(0)\n}")
    assert rows(module, "e")[0].operands == ["a", "?"]
    assert module.problems == (
        ("<text>:2:7", "the operand nowhere is no instruction of its computation", "it is shown as unknown"),
    )


def test_computations_defined_later_are_found_and_unknown_ones_become_problems() -> None:
    text = "e {\n a = f32[] parameter(0)\n ROOT r = f32[] foo(a), calls={%later, %never}\n}\n"
    text += "later { p = f32[] parameter(0) }"
    module = one(text)
    assert rows(module, "e")[1].called == [("calls", "later")]
    assert [what for _, what, _ in module.problems] == ["what is called, never, is no computation of the module"]


# Files.


def test_a_file_of_many_modules_gives_them_in_order_with_its_lines() -> None:
    modules = list(read_modules("// first\n" + MODULE + "\n// second\n" + MODULE.replace("jit_f", "jit_g")))
    assert [module.name for module in modules] == ["jit_f", "jit_g"]
    lines = (MODULE.count("\n") + 2) * np.array([0, 1])
    assert [module.line[0] for module in modules] == (lines + 5).tolist()


def test_parts_without_header_are_modules_where_they_cannot_be_one() -> None:
    part = "e { p = f32[] parameter(0) }\n"
    assert len(list(read_modules(f"{part}// -----\n{part}// -----\n// only a comment\n"))) == 2
    assert len(list(read_modules(f"{part}// -----\n{part.replace('e {', 'f {')}"))) == 1


def test_graphs_between_markers_are_found_in_a_log() -> None:
    log = "[Sync]\nTensorsGraphInfo:\n  mark_step (/x/y.py:949)\n\n## BEGIN_GRAPH\n{}\n\n## END_GRAPH\n\n"
    modules = list(read_modules(log.format(MODULE) + log.format(MODULE)))
    assert [module.instruction_count for module in modules] == [6, 6]
    assert modules[1].problems == ()


@pytest.mark.parametrize(
    "prefix",
    [
        "I0000 00:00:1700000000.123456    {n} dump.cc:12] ",
        "2024-05-0{n} 10:00:00.{n}: I xla/service/hlo.cc:7] ",
        "[{n}] ",
    ],
)
def test_lines_with_a_logger_s_prefix_are_read(prefix: str) -> None:
    text = "".join(prefix.replace("{n}", str(number % 9)) + line for number, line in enumerate(MODULE.splitlines(True)))
    module = one("starting\n" + text)
    assert (module.name, module.instruction_count, module.line[0]) == ("jit_f", 6, 5)


def test_only_the_header_may_have_the_prefix() -> None:
    assert one("I0000 compiler.cc:1] " + MODULE).instruction_count == 6


def test_comments_of_all_kinds_are_passed_over() -> None:
    text = "# RUN: x\n; y\n// z\n" + MODULE.replace("%x,", "/* a, b */ %x, // c\n").replace(
        "ENTRY", "// CHECK: {\nENTRY"
    )
    assert one(text).instruction_count == 6


def test_lines_behind_the_last_module_are_a_problem() -> None:
    (problem,) = one(MODULE + "\nbye bye\n").problems
    assert problem[0] == "<text>:15:1"


def test_windows_lines_and_bytes_are_read() -> None:
    assert one(MODULE.replace("\n", "\r\n")).instruction_count == 6
    (module,) = read_modules(MODULE.replace("w[", "\u00fc[").encode() + b"\n// \xff\n")
    assert module.op_name[3].as_py() == "ü['a']"


def test_a_computation_s_thread_is_passed_over() -> None:
    assert one(MODULE.replace("}\n\nENTRY", '}, execution_thread="t"\n\nENTRY')).instruction_count == 6


def test_the_oldest_header_has_a_colon() -> None:
    assert one("HloModule old:\n\nENTRY e { p = f32[] parameter(0) }").name == "old"


ERRORS = [
    ("", "<text>: expected HLO text, found nothing"),
    (" \n\n", "found nothing"),
    ("// x\n", "<text>: expected HLO, found only comments"),
    ("hello\nworld", "<text>:1:1: expected HLO: `HloModule`, a computation or an instruction"),
    ("HloModule m\n", "<text>:1:11: expected a computation after the header"),
    ("HloModule m, x\n", "<text>:1:14: expected an attribute"),
    ("HloModule m\nENTRY e (p: f32[]) -> f32[]\n", "<text>:2:1: expected a computation"),
    ("e {\n p = f32[] parameter(0)\n", "<text>:1:1: expected `}` after the computation that begins here"),
    ("e {\n}\n", "<text>:2:1: expected an instruction"),
    ("e {\n p f32[] parameter(0)\n}", "<text>:2:2: expected `=` after an instruction's name"),
    ("e {\n p = f32[2 parameter(0)\n}", "<text>:2:6: expected a shape and an opcode"),
    ("e {\n p = f32[2,x] parameter(0)\n}", "<text>:2:12: expected a dimension"),
    ("e {\n p = (f32[2] parameter(0)\n}", "expected a shape"),
    ("e {\n p = f32[] parameter(x)\n}", "<text>:2:22: expected a parameter's number"),
    ("e {\n p = f32[] constant(1\n}", "<text>:2:21: expected `)` after a constant's value"),
    ("e {\n p = f32[] add(1 2)\n}", "<text>:2:18: expected `,` or `)`"),
    ("e {\n p = f32[] add(]\n}", "<text>:2:16: expected an operand's name"),
    ("e {\n p = f32[] add(), x\n}", "<text>:2:19: expected an attribute"),
    ("e {\n p = f32[] add(), x={{\n}", "expected an attribute with a value that ends"),
    ('e {\n p = f32[] add(), metadata={op_name="x\n}', "expected `name=value` in the metadata"),
    ("e {\n p = f32[] add(), calls=\n}", "expected an attribute with a value"),
    ("e {\n p = f32[] add()\n p = f32[] add()\n}", "<text>:3:2: expected a name that no other instruction"),
    ("e {\n ROOT p = f32[] add()\n ROOT q = f32[] add()\n}", "<text>:3:7: expected one ROOT"),
    ("ENTRY e { p = f32[] add() }\nENTRY f { p = f32[] add() }", "<text>:2:1: expected one ENTRY"),
    ("e { p = f32[] add() }\ne { p = f32[] add() }", "<text>:2:1: expected a name that no other computation has"),
    ("e { p = f32[] add() }\n???\nf { p = f32[] add() }", "<text>:2:1: expected a computation or `HloModule`"),
    ("e {\n \0\n}", "<text>:2:2: expected HLO text, found a zero byte"),
    ("e { p = f32[] " + "add(" * 300, "to nest at most 200 deep"),
]


@pytest.mark.parametrize(("text", "message"), ERRORS)
def test_what_cannot_be_read_is_an_error_with_a_place(text: str, message: str) -> None:
    with pytest.raises(ParseError) as caught:
        list(read_modules(text))
    assert message in str(caught.value)


def test_modules_before_a_damaged_one_are_given() -> None:
    modules = read_modules(MODULE + "\nHloModule n\nENTRY e {\n oh no\n}", place="dump.txt")
    assert next(modules).name == "jit_f"
    with pytest.raises(ParseError, match=r"dump\.txt:17:2: "):
        next(modules)


def test_a_huge_constant_and_a_long_line_are_read() -> None:
    values = ",".join(map(str, range(200_000)))
    module = one(f"e {{\n ROOT c = s32[200000]{{0}} constant({{{values}}}), x={{{values}}}\n}}")
    assert module.literal[0].as_py() == f"{{{values}}}"
    assert module.raw_attributes[0].as_py() == f"x={{{values}}}"


def test_many_small_instructions_find_room() -> None:
    body = "\n".join(f"a{number}=f32[]a()" for number in range(20_000))
    module = one(f"e{{\n{body}}}")
    assert module.instruction_count == 20_000
    assert module.names[19_999].as_py() == "a19999"


# Tables, and whatever bytes.


def test_parse_gives_the_tables_of_one_module() -> None:
    tables = parse(MODULE)
    assert set(tables) == {"computations", "instructions", "fusions", "predictions"}
    instructions = tables["instructions"].set_index("instruction")
    assert list(instructions.loc["r", "operands"]) == ["p"]
    assert instructions.loc["p", "bytes"] == 512
    assert instructions.loc["r", "source_line"] == 7
    with pytest.raises(ParseError, match="parse_all"):
        parse(MODULE + MODULE)
    assert len(list(parse_all(MODULE + MODULE))) == 2


FULL = (
    MODULE + FRAMES + "\n".join(f"e{at} {{ a = f32[2] parameter(0)\n {line} }}" for at, (line, *_) in enumerate(LINES))
)


@given(st.integers(0, len(FULL)), st.integers(0, len(FULL)))
def test_a_text_with_a_piece_cut_out_is_read_or_refused(first: int, second: int) -> None:
    with contextlib.suppress(ParseError):
        list(read_modules(FULL[: min(first, second)] + FULL[max(first, second) :]))


@given(st.randoms(use_true_random=False), st.integers(1, 8))
def test_a_text_with_bytes_flipped_is_read_or_refused(chance: random.Random, count: int) -> None:
    data = bytearray(MODULE.encode() + FRAMES.encode())
    for _ in range(count):
        data[chance.randrange(len(data))] = chance.randrange(256)
    with contextlib.suppress(ParseError):
        list(read_modules(bytes(data)))


@given(st.text(alphabet="{}()[]\"'%#=,:/*\\\n abR0-.<>?", max_size=60))
def test_any_text_in_a_computation_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(ParseError):
        list(read_modules(f"HloModule m\nENTRY e {{\n a = f32[] parameter(0){text}\n}}"))
