"""Times our reading of HLO text, up to the tables, against XLA's own parser on the same text in the same process.

    python benchmarks/hlo_parse.py                 # compiles an 8-layer training step for a TPU v5e 4x4, without a TPU
    python benchmarks/hlo_parse.py --text FILE     # takes a text that is there

Rounds alternate between the parsers; the medians are compared, by processor time, which other work on the machine
disturbs least, and by wall time. Memory is what a fresh process needs above what it has before it reads the text.
Ends with 1 when the tables come at less than 3 times XLA's speed, or take 8 times the text's memory or more.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

LEAST_RATIO, MOST_MEMORY = 3, 8


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--text", type=Path, help="an HLO text file; compiled afresh when left out")
    options.add_argument("--rounds", type=int, default=9)
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = chosen.text or compiled_text(Path(folder))
        text = path.read_text()
        measured = timings(text, chosen.rounds)
        memory = {name: peak_memory(path, name) / len(text) for name in ("tables", "xla")}
    print(f"{path.name}: {len(text) / 1e6:.2f} MB, {text.count(' = '):,} instructions\n")
    print("| | processor ms | MB/s | times XLA's | wall ms | times XLA's | memory / text |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for name, (processor, wall) in measured.items():
        of_xla = [measured["xla"][at] / value for at, value in enumerate((processor, wall))]
        needed = f"{memory[name]:.1f}" if name in memory else ""
        print(
            f"| {WHAT[name]} | {1e3 * processor:.1f} | {len(text) / processor / 1e6:.0f} | {of_xla[0]:.1f} "
            f"| {1e3 * wall:.1f} | {of_xla[1]:.1f} | {needed} |"
        )
    ratio = measured["xla"][0] / measured["tables"][0]
    sys.exit(ratio < LEAST_RATIO or memory["tables"] >= MOST_MEMORY)


WHAT = {
    "xla": "XLA: `hlo_module_from_text` alone",
    "columns": "`read_modules`: columns of the module",
    "tables": "`parse`: `instructions`, `fusions`, `computations` as frames",
}


def parsers(text):
    """What is measured, by name."""
    import jaxlib._hlo as xla

    from hlotrace.parsers import hlo_text

    return {
        "xla": lambda: xla.hlo_module_from_text(text),
        "columns": lambda: list(hlo_text.read_modules(text)),
        "tables": lambda: hlo_text.parse(text),
    }


def timings(text, rounds):
    """The median processor and wall seconds of each parser; the first round, which compiles or loads, is left out."""
    taken = {name: [] for name in WHAT}
    for number in range(rounds + 1):
        for name, parse in parsers(text).items():
            start = time.process_time(), time.perf_counter()
            result = parse()
            taken[name] += [(time.process_time() - start[0], time.perf_counter() - start[1])] if number else []
            del result
    return {name: [statistics.median(column) for column in zip(*rows, strict=True)] for name, rows in taken.items()}


PEAK = """
import json, re, sys
sys.path.insert(0, sys.argv[1])
from hlo_parse import parsers

def kilobytes(of):
    return int(re.search(rf"{of}:\\s+(\\d+)", open("/proc/self/status").read())[1])

parsers("e { p = f32[] parameter(0) }")[sys.argv[3]]()  # imports, and compiles what is to be compiled
text = open(sys.argv[2]).read()
before = kilobytes("VmRSS")
open("/proc/self/clear_refs", "w").write("5")  # VmHWM begins anew
result = parsers(text)[sys.argv[3]]()
print(json.dumps(1024 * (kilobytes("VmHWM") - before)))
"""


def peak_memory(path, name):
    """Bytes that a fresh process needs at most to parse the file, above the text itself and all that is imported."""
    arguments = [sys.executable, "-c", PEAK, str(Path(__file__).parent), str(path), name]
    return json.loads(subprocess.run(arguments, check=True, capture_output=True, text=True).stdout)


STEP = """
import sys, jax, jax.numpy as jnp, numpy as np
from jax.experimental import topologies
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

LAYERS, WIDTH, HEADS, HIDDEN, LENGTH = 8, 1024, 16, 4096, 1024
devices = topologies.get_topology_desc(platform="tpu", topology_name="v5e:4x4").devices
mesh = Mesh(np.array(devices).reshape(8, 2), ("data", "model"))
SHARDED = {
    "norm_attention": ((WIDTH,), P()), "norm_feed_forward": ((WIDTH,), P()),
    "query": ((WIDTH, WIDTH), P("data", "model")), "key": ((WIDTH, WIDTH), P("data", "model")),
    "value": ((WIDTH, WIDTH), P("data", "model")), "out": ((WIDTH, WIDTH), P("model", "data")),
    "gate": ((WIDTH, HIDDEN), P("data", "model")), "up": ((WIDTH, HIDDEN), P("data", "model")),
    "down": ((HIDDEN, WIDTH), P("model", "data")),
}

def normalised(x, scale):
    wide = x.astype(jnp.float32)
    return (wide * jax.lax.rsqrt((wide * wide).mean(-1, keepdims=True) + 1e-6) * scale).astype(x.dtype)

def layer(p, x):
    batch, length, _ = x.shape
    h = normalised(x, p["norm_attention"])
    q, k, v = ((h @ p[name]).reshape(batch, length, HEADS, -1) for name in ("query", "key", "value"))
    scores = jnp.einsum("blhd,bmhd->bhlm", q, k).astype(jnp.float32) / np.sqrt(WIDTH // HEADS)
    scores = jnp.where(jnp.tril(jnp.ones((length, length), bool)), scores, -1e9)
    mixed = jnp.einsum("bhlm,bmhd->blhd", jax.nn.softmax(scores).astype(x.dtype), v)
    x = x + mixed.reshape(batch, length, -1) @ p["out"]
    h = normalised(x, p["norm_feed_forward"])
    return x + (jax.nn.silu(h @ p["gate"]) * (h @ p["up"])) @ p["down"]

def step(layers, momenta, x):
    def loss(layers):
        y = x
        for p in layers:
            y = layer(p, y)
        return (y.astype(jnp.float32) ** 2).mean()
    value, gradients = jax.value_and_grad(loss)(layers)
    momenta = jax.tree.map(lambda m, g: 0.9 * m + g, momenta, gradients)
    return jax.tree.map(lambda w, m: w - 1e-3 * m, layers, momenta), momenta, value

def shape(dims, spec):
    return jax.ShapeDtypeStruct(dims, jnp.bfloat16, sharding=NamedSharding(mesh, spec))

layers = [{name: shape(*how) for name, how in SHARDED.items()} for _ in range(LAYERS)]
x = shape((2 * len(devices), LENGTH, WIDTH), P("data"))
lowered = jax.jit(step, donate_argnums=(0, 1)).lower(layers, layers, x)
lowered.compile(compiler_options={"xla_dump_to": sys.argv[1], "xla_dump_hlo_as_text": True})
"""


def compiled_text(folder):
    """The text after code generation of an 8-layer sharded training step, compiled here for a TPU v5e 4x4."""
    print("compiling an 8-layer training step for a TPU v5e 4x4 (a minute or more) …", file=sys.stderr)
    environment = {"JAX_PLATFORMS": "cpu", "TPU_SKIP_MDS_QUERY": "1", "ALLOW_MULTIPLE_LIBTPU_LOAD": "1"}
    with (folder / "log").open("w") as log:
        command = [sys.executable, "-c", STEP, str(folder)]
        subprocess.run(command, check=True, env={**os.environ, **environment}, stderr=log)
    return max(folder.glob("*after_codegen.txt"), key=lambda path: path.stat().st_size)


if __name__ == "__main__":
    main()
