"""Measured times of operations on real TPUs, beside what is known of each without a run.

    python benchmarks/tpu_traces.py --v6e tpu_inference_2.xplane.pb --tpu7x 2026_01_11_21_26_41_….trace.json.gz

The v6e trace is openxla/xprof's (xprof/convert/test_xplanes); its HLO carries the cost model's cycles. The other is
vllm-project/tpu-inference's (profiles/): a decoding language model on what must be a TPU7x, of which only the text of
each operation is left, not what is inside its fusions. Its products are rebuilt and compiled for tpu7x, for the cost
model's word on them (`rebuilt_products.py`). Writes benchmarks/tpu_measurements.csv, a row a distinct operation:
`docs/make_accuracy.py` goes on from there.
"""

import argparse
import collections
import csv
import gzip
import json
import re
import statistics
from pathlib import Path

import numpy as np
from rebuilt_products import rebuilt

from hlotrace.devices import chip_by_name
from hlotrace.hlo.facts import Facts
from hlotrace.hlo.floors import floors
from hlotrace.hlo.links import link_ns
from hlotrace.hlo.tables import module_tables
from hlotrace.parsers._wire import Message
from hlotrace.parsers.hlo_proto import read_module
from hlotrace.parsers.hlo_text import read_modules

UNITS = ("compute_floor_ns", "hbm_floor_ns", "vmem_floor_ns")
COLUMNS = (
    *("chip", "class", "operation", "runs", "measured_ns", "shortest_ns", "longest_ns"),
    *(*UNITS, "model_ns", "link_ns"),
)
OUT = Path(__file__).with_name("tpu_measurements.csv")
METADATA, OPS = "/host:metadata", "XLA Ops"
CLASS_OF = {
    "convolution fusion": "matmul fusion",
    "loop fusion": "loop fusion",
    "data formatting": "bare broadcast, copy or convert",
    "broadcast": "bare broadcast, copy or convert",
    "slice": "bare slice or pad",
    "pad": "bare slice or pad",
    "all-reduce": "collective",
    "all-gather": "collective",
}
"""XProf's categories of the text-only trace: what is left out cannot be checked with the text alone."""
SHAPE = r"[a-z]\w*\[[\d,]*\](?:\{[^}]*\})?"


def row_of(chip, name, operation, durations, least, model, link):
    """`least` are the floors by UNITS."""
    figures = (statistics.median(durations), min(durations), max(durations), *least, model, link)
    cells = ["" if figure is None or np.isnan(figure) else f"{figure:.2f}" for figure in figures]
    return dict(zip(COLUMNS, (chip, name, operation, len(durations), *cells), strict=True))


def v6e_rows(path):
    """Operations of the trace whose modules are in it whole, all chips' runs together."""
    space = Message(path.read_bytes(), path.name)
    planes = {plane.text(2): plane for plane in space.messages(1)}
    durations = collections.defaultdict(list)
    for name, plane in planes.items():
        if name.startswith("/device:TPU:"):
            for program, operation, length in device_events(plane):
                durations[program, operation].append(length)
    chip = chip_by_name("v6e")
    rows = []
    for program, predicted in modules_in(planes[METADATA], chip):
        for found in predicted:
            lengths = durations.get((program, found["instruction"]))
            if lengths and found["class"] not in ("async copy", "host transfer") and found["hbm_floor_ns"]:
                cycles = found["estimated_cycles"]
                model = cycles / chip.clock.value * 1e9 if cycles else None
                least = [found[unit] for unit in UNITS]
                rows.append(row_of("v6e", found["class"], found["instruction"], lengths, least, model, found["link"]))
    return rows


def device_events(plane):
    """(program's id, operation, nanoseconds) of a device's operations."""
    stats = {entry.message(2).integer(1): entry.message(2).text(2) for entry in plane.messages(5)}
    known = {}
    for entry in plane.messages(4):
        event = entry.message(2)
        values = {stats.get(stat.integer(1)): stat.integer(3) or stat.integer(4) for stat in event.messages(5)}
        known[event.integer(1)] = (values.get("program_id"), event.text(4))
    for line in plane.messages(3):
        if line.text(2) == OPS:
            for event in line.messages(4):
                yield *known[event.integer(1)], event.integer(3) / 1000


def modules_in(plane, chip):
    for entry in plane.messages(4):
        event = entry.message(2)
        for stat in event.messages(5):
            if proto := stat.raw(6):
                hlo, _ = read_module(proto, place=event.text(2))
                made = module_tables(hlo, module=hlo.name, stage="after_codegen", platform="tpu", chip=chip)
                facts = Facts(hlo)
                link = link_ns(facts, np.flatnonzero(facts.is_launch), chip)
                rows = made["predictions"].to_pylist()
                yield event.integer(1), [{**row, "link": value} for row, value in zip(rows, link.tolist(), strict=True)]


def tpu7x_rows(path):
    """Operations of which the trace has the text: alike ones, but for the names in it, are one."""
    groups = collections.defaultdict(list)
    for event in json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]:
        arguments = event.get("args", {})
        if event.get("ph") == "X" and arguments.get("hlo_category") in CLASS_OF and "long_name" in arguments:
            name, text = arguments["long_name"].split(" = ", 1)
            alike = re.sub(r"calls=%\S+|to_apply=%\S+|channel_id=\d+|%[\w.\-]+", "", text)
            groups[arguments["hlo_category"], alike].append((name.removeprefix("%"), text, arguments))
    rows = []
    for (category, _), events in groups.items():
        name, text, arguments = events[0]
        durations = [int(found["device_duration_ps"]) / 1000 for _, _, found in events]
        kind = "reduce" if category == "loop fusion" and "reduce" in name else CLASS_OF[category]
        least, link = figures(name, text, int(arguments["model_flops"]))
        kind, model = rebuilt(text) if kind == "matmul fusion" else (kind, None)
        rows.append(row_of("tpu7x", kind, name, durations, least, model, link))
    return rows


def figures(name, text, flops):
    """The floors and the link model's time of one instruction, in a module made around its text."""
    chip = chip_by_name("tpu7x")
    operands = dict.fromkeys(re.findall(rf"({SHAPE}) (%[\w.\-]+)", text.split(", kind=")[0]))
    distinct = {operand: shape for shape, operand in operands}
    lines = [f"  {operand} = {shape} parameter({at})" for at, (operand, shape) in enumerate(distinct.items())]
    body = re.sub(r", (calls|to_apply)=%\S+", "", text)
    module = "\n".join(["HloModule m, num_partitions=2", "", "ENTRY %main {", *lines, f"  ROOT %{name} = {body}", "}"])
    facts = Facts(next(iter(read_modules(module, place=name))))
    row = np.flatnonzero(facts.is_launch)[-1:]
    least = floors(facts, chip)
    compute = flops / chip.peak_flops("bf16").value * 1e9
    return (compute, least.hbm[row][0], least.vmem[row][0]), link_ns(facts, row, chip)[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--v6e", type=Path, required=True, metavar="XPLANE")
    parser.add_argument("--tpu7x", type=Path, required=True, metavar="TRACE")
    options = parser.parse_args()
    rows = v6e_rows(options.v6e) + tpu7x_rows(options.tpu7x)
    rows.sort(key=lambda row: (row["class"], row["chip"], row["operation"]))
    with OUT.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    print(f"{OUT.name}: {len(rows)} operations")


if __name__ == "__main__":
    main()
