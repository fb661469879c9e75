"""Reading HLO text into the full `instructions` and `fusions` tables, against XLA's own parser on the same text.

python benchmarks/hlo_parse.py                compiles an 8-layer sharded training step for v5e:4x4 and reads its text
python benchmarks/hlo_parse.py --text FILE    reads that text instead
"""

from __future__ import annotations

import argparse
import resource
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

LAYERS, MODEL, HEADS, HIDDEN, LENGTH = 8, 1024, 16, 4096, 1024
SPECS = {
    "wq": ((MODEL, MODEL), ("data", "model")),
    "wk": ((MODEL, MODEL), ("data", "model")),
    "wv": ((MODEL, MODEL), ("data", "model")),
    "wo": ((MODEL, MODEL), ("model", "data")),
    "up": ((MODEL, HIDDEN), ("data", "model")),
    "gate": ((MODEL, HIDDEN), ("data", "model")),
    "down": ((HIDDEN, MODEL), ("model", "data")),
    "norm": ((MODEL,), ()),
}


def training_step() -> Any:
    """A step of gradient descent with momentum over a stack of transformer layers."""
    import jax
    import jax.numpy as jnp

    def layer(x, params):
        batch, length, _ = x.shape
        scale = jax.lax.rsqrt(jnp.mean(jnp.square(x.astype(jnp.float32)), -1, keepdims=True) + 1e-6)
        h = (x * scale).astype(x.dtype) * params["norm"]
        q, k, v = ((h @ params[name]).reshape(batch, length, HEADS, -1) for name in ("wq", "wk", "wv"))
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k).astype(jnp.float32)
        scores = jnp.where(jnp.tril(jnp.ones((length, length), bool)), scores, -1e9)
        mixed = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores).astype(x.dtype), v)
        x = x + mixed.reshape(x.shape) @ params["wo"]
        return x + (jax.nn.silu(x @ params["gate"]) * (x @ params["up"])) @ params["down"]

    def loss(stack, x):
        for params in stack:
            x = layer(x, params)
        return jnp.mean(jnp.square(x.astype(jnp.float32)))

    def step(stack, momentum, x):
        value, gradients = jax.value_and_grad(loss)(stack, x)
        momentum = jax.tree.map(lambda old, new: 0.9 * old + new, momentum, gradients)
        return jax.tree.map(lambda p, m: p - 1e-3 * m, stack, momentum), momentum, value

    return jax.jit(step, donate_argnums=(0, 1))


def compiled_text() -> str:
    """The step's text after code generation for a TPU v5e 4x4."""
    import jax
    import jax.numpy as jnp
    from jax.sharding import NamedSharding, PartitionSpec

    import hlotrace

    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_num_cpu_devices", 16)
    mesh = jax.make_mesh((8, 2), ("data", "model"))

    def struct(shape, axes):
        return jax.ShapeDtypeStruct(shape, jnp.bfloat16, sharding=NamedSharding(mesh, PartitionSpec(*axes)))

    stack = [{name: struct(*spec) for name, spec in SPECS.items()} for _ in range(LAYERS)]
    batch = struct((32, LENGTH, MODEL), ("data",))
    with tempfile.TemporaryDirectory() as place:
        bundle = hlotrace.capture(training_step(), stack, stack, batch, target="v5e:4x4", out=f"{place}/step")
        (path,) = Path(bundle).glob("programs/*/*.after_codegen.txt")
        return path.read_text(encoding="utf-8")


def seconds(work: Callable[[], Any]) -> float:
    """How long a call takes, on the clock."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def main() -> None:
    """Alternate both readers on one text, and print the medians and the ratio of each pair."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--text", type=Path)
    arguments.add_argument("--rounds", type=int, default=9)
    chosen = arguments.parse_args()
    text = chosen.text.read_text(encoding="utf-8") if chosen.text else compiled_text()

    from jaxlib import _hlo

    from hlotrace.parsers.hlo_text import parse

    def ours() -> None:
        tables = parse(text)
        for name in ("instructions", "fusions"):
            tables[name]

    ours()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    rounds = [(seconds(ours), seconds(lambda: _hlo.hlo_module_from_text(text))) for _ in range(chosen.rounds)]
    megabytes = len(text) / 1e6
    own, xla = (statistics.median(times) for times in zip(*rounds, strict=True))
    ratio = statistics.median(theirs / mine for mine, theirs in rounds)
    rows = len(parse(text)["instructions"])
    print("| text | instructions | hlotrace, tables included | XLA's parser alone | ratio (median of pairs) |")
    print("| ---: | ---: | ---: | ---: | ---: |")
    print(f"| {megabytes:.2f} MB | {rows:,} | {megabytes / own:.1f} MB/s | {megabytes / xla:.1f} MB/s | {ratio:.2f} |")
    print(f"largest resident set after the first reading: {before / 1024:.0f} MiB")


if __name__ == "__main__":
    main()
