from __future__ import annotations

import pytest

from hlotrace.analyses import costs
from hlotrace.analyses.findings import findings
from hlotrace.analyses.modules import chosen_module
from hlotrace.devices import chip_by_name


def launched(synthetic, **changes):
    rows = synthetic.layer_rows()["instructions"]
    changed = [{**row, **changes.get(row["instruction"].replace(".", "_").replace("-", "_"), {})} for row in rows]
    return costs.launches(synthetic.SyntheticTables({"instructions": changed})["instructions"], "after_codegen")


def test_launches_are_ranked_by_cycles_and_without_these_by_flops_then_bytes(synthetic):
    assert costs.ranking(launched(synthetic)) == "cycles_total"
    none = {"estimated_cycles": None}
    bare = launched(synthetic, fusion_1=none, multiply_1=none)
    assert costs.ranking(bare) == "flops_total"
    nothing = {**none, "flops": None}
    assert costs.ranking(launched(synthetic, fusion_1=nothing, multiply_1=nothing)) == "hbm_bytes_total"


def test_shares_are_of_what_has_an_estimate(synthetic):
    top = costs.top_launches(launched(synthetic))
    assert list(top["instruction"]) == ["fusion.1", "multiply.1", "custom-call.1"]
    assert list(top["share"][:2]) == [pytest.approx(0.8), pytest.approx(0.2)]
    assert top["share"].isna().iloc[2]


def test_coverage_counts_launches_as_often_as_they_run(synthetic):
    reach = costs.coverage(launched(synthetic, custom_call_1={"execution_count": 8}))
    assert (reach.estimated, reach.total, reach.without) == (2, 10, (("custom-call", 8),))
    assert costs.coverage(launched(synthetic).iloc[:0]).share == 0.0


def predictions(synthetic):
    return synthetic.SyntheticTables(synthetic.layer_rows())["predictions"]


def test_the_floor_is_the_slower_of_matrix_units_and_memory(synthetic):
    floor = costs.floor(predictions(synthetic), chip_by_name("v5e"))
    assert floor is not None
    assert floor.bound_by == "HBM bandwidth"
    assert floor.ns == floor.memory_ns == 3 * 15_364
    assert floor.compute_ns == 5_076 + 2
    assert costs.floor(predictions(synthetic), None) is None
    assert costs.floor(predictions(synthetic).iloc[:0], chip_by_name("v5e")) is None


def test_the_floor_takes_the_costliest_branch_of_a_conditional(synthetic):
    alone = costs.floor(predictions(synthetic), chip_by_name("v5e"))
    frame = predictions(synthetic)
    frame["branch"] = [f"conditional.1#{number}" for number in range(len(frame))]
    floor = costs.floor(frame, chip_by_name("v5e"))
    assert alone is not None
    assert floor is not None
    assert floor.memory_ns == (frame["hbm_floor_ns"] * frame["execution_count"]).max() < alone.memory_ns
    assert floor.compute_ns == (frame["compute_floor_ns"] * frame["execution_count"]).max()


def test_no_part_of_the_flops_is_claimed_where_none_are_known(synthetic):
    unknown = {"flops": None}
    reach = costs.coverage(launched(synthetic, fusion_1=unknown, multiply_1=unknown, custom_call_1=unknown))
    assert (reach.flops_share, reach.without_flops) == (None, 3)
    assert costs.coverage(launched(synthetic)).without_flops == 1


def test_a_chip_is_told_by_the_target_before_the_kind_of_device(synthetic):
    row = chosen_module(synthetic.SyntheticTables(synthetic.layer_rows())["modules"])
    assert costs.chip_of({**row, "target": "v4:2x2x1:megacore", "device_kind": "TPU v4"}).devices == 1
    assert costs.chip_of({**row, "target": None}).name == "v5e"
    assert costs.chip_of({**row, "target": "cpu", "device_kind": "cpu"}) is None


def test_findings_are_at_most_three_and_the_weightiest_come_first(synthetic):
    row = chosen_module(synthetic.SyntheticTables(synthetic.layer_rows())["modules"])
    nearly_full = {**row, "hbm_needed_bytes": 99, "hbm_capacity_bytes": 100}
    found = findings(nearly_full, launched(synthetic), None)
    assert len(found) <= 3
    assert found[0].text.startswith("It fits with little room: 99.0 %")
    assert [item.weight for item in found] == sorted((item.weight for item in found), reverse=True)


def test_a_module_with_nothing_to_say_has_no_findings(synthetic):
    row = chosen_module(synthetic.SyntheticTables({"modules": [{"module": "m", "name": "m"}]})["modules"])
    assert findings(row, launched(synthetic).iloc[:0], None) == []
