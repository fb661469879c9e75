from __future__ import annotations

from hlotrace.analyses.fusions import fusion_groups, joined_sources, members
from hlotrace.analyses.modules import records


def inside(synthetic, instructions):
    rows = {**synthetic.layer_rows(), "instructions": instructions}
    tables = synthetic.SyntheticTables(rows)
    return members(tables["instructions"], records(tables["fusions"])[0], "after_codegen")


def test_fusions_are_ordered_by_cost_with_unknown_ones_last(synthetic):
    first = synthetic.layer_rows()["fusions"][0]
    rows = [
        {**first, "fusion": "small", "estimated_cycles": 1},
        {**first, "fusion": "unknown", "estimated_cycles": None},
        {**first, "fusion": "looped", "estimated_cycles": 1, "execution_count": 5},
    ]
    groups = fusion_groups(synthetic.SyntheticTables({"fusions": rows})["fusions"])
    assert list(groups["fusion"]) == ["looped", "small", "unknown"]
    assert list(groups["launches_saved_total"]) == [5, 1, 1]


def test_the_graph_names_its_inputs_after_the_operands_and_sees_through_bitcasts(synthetic):
    found = inside(synthetic, synthetic.layer_rows()["instructions"])
    kinds = {name: kind for name, (_, kind) in found.nodes.items()}
    assert kinds == {"param_0": "input", "dot.1": "member", "add.1": "member", "output": "output"}
    assert found.nodes["param_0"][0]["operand"] == "x"
    size = 4 * synthetic.MIB
    assert sorted(found.edges) == [
        ("add.1", "output", size, True),
        ("dot.1", "add.1", size, False),
        ("param_0", "add.1", size, True),
        ("param_0", "dot.1", size, True),
    ]


def test_a_fusion_of_several_results_has_an_output_for_each(synthetic):
    rows = synthetic.layer_rows()["instructions"]
    rows = [{**row, "is_root": False} if row["computation"] == "f1" else row for row in rows]
    tuple_root = synthetic.instruction_row(
        "after_codegen", "f1", "tuple.1", "tuple", operands=["dot.1", "add.1"], is_root=True, is_launch=False
    )
    found = inside(synthetic, [*rows, tuple_root])
    assert [edge[:2] for edge in found.edges if edge[1].startswith("output")] == [
        ("dot.1", "output 0"),
        ("add.1", "output 1"),
    ]


def test_members_of_nested_fusions_stand_in_their_place(synthetic):
    rows = synthetic.layer_rows()["instructions"]
    stage = "after_codegen"
    nested = [
        synthetic.instruction_row(
            stage, "f1", "fusion.7", "fusion", operands=["add.1"], called=["f2"], is_launch=False
        ),
        synthetic.instruction_row(stage, "f1", "subtract.1", "subtract", operands=["fusion.7"], is_launch=False),
        synthetic.instruction_row(stage, "f2", "p", "parameter", parameter_number=0, is_launch=False),
        synthetic.instruction_row(stage, "f2", "abs.1", "abs", operands=["p"], is_launch=False),
        synthetic.instruction_row(stage, "f2", "negate.1", "negate", operands=["abs.1"], is_launch=False, is_root=True),
    ]
    found = inside(synthetic, [*rows, *nested])
    assert found.frame is not None
    assert list(found.frame["instruction"]) == ["dot.1", "add.1", "abs.1", "negate.1", "subtract.1"]
    assert found.nodes["fusion.7"][1] == "member"


def test_a_ring_of_bitcasts_ends(synthetic):
    rows = synthetic.layer_rows()["instructions"]
    for row in rows:
        if row["instruction"] == "bitcast.1":
            row["operands"] = ["bitcast.1"]
    assert inside(synthetic, rows).nodes


def test_source_lines_are_grouped_by_file():
    assert joined_sources(["/a/layer.py:12", "/a/layer.py:14", "/b/nn.py:88"]) == "layer.py:12,14; nn.py:88"
    assert joined_sources(None) == ""
    assert joined_sources(["noline"]) == "noline"
