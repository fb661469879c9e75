"""The cost model's word on products that ran on a TPU7x, of which a trace kept the text: rebuilt, and compiled for it.

A fusion's text tells its operands and not what is inside. These are the layers of a language model, and there the
operands tell it: residuals that are summed, a row's norm and the scale that follow, a mask of rows, a bias, gate and up
projection side by side. What is compiled computes that; where it keeps its operands (VMEM or HBM) is the compiler's
choice anew.
"""

import functools
import os
import re
from dataclasses import dataclass

os.environ |= {"JAX_PLATFORMS": "cpu", "TPU_SKIP_MDS_QUERY": "1", "ALLOW_MULTIPLE_LIBTPU_LOAD": "1"}

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import topologies

from hlotrace.devices import chip_by_name
from hlotrace.hlo.tables import module_tables
from hlotrace.parsers.hlo_text import read_modules

TARGET, CHIP = "tpu7x:2x2x1", "tpu7x"
DTYPES = {"bf16": jnp.bfloat16, "f32": jnp.float32, "pred": jnp.bool_}
OPERAND = re.compile(r"(\w+)\[([\d,]*)\](?:\{[^}]*\})? %")


@dataclass(frozen=True)
class Layer:
    """The parts of a product that its operands tell: shapes, None where there is no such part."""

    weight: tuple[int, int]
    inputs: tuple[tuple[int, ...], ...]
    gated: bool
    norm: bool
    scale: bool
    bias: bool
    mask: bool

    @property
    def is_plain(self):
        """Whether the product reads its inputs as they are."""
        return len(self.inputs) == 1 and not (self.gated or self.norm or self.scale or self.mask)


def layer_of(text):
    """What a fusion's text tells; None where its operands are none that are known here."""
    operands = [(dtype, tuple(map(int, dims.split(",")))) for dtype, dims in OPERAND.findall(text) if dims]
    matrices = [tuple(n for n in dims if n != 1) for dtype, dims in operands if dtype == "bf16" and len(dims) > 1]
    vectors = [(dtype, dims[0]) for dtype, dims in operands if len(dims) == 1]
    weight = max(matrices, key=lambda dims: dims[0] if dims[0] != 1024 else 0)
    inputs = tuple(dims for dims in matrices if dims is not weight)
    outputs, depth = weight
    gated = any(dims[-1] == 2 * depth for dims in inputs)
    if not inputs or any(dims[-1] not in (depth, 2 * depth) for dims in inputs):
        return None
    rows = inputs[0][0]
    return Layer(
        weight, inputs, gated, ("f32", rows) in vectors, ("bf16", depth) in vectors, ("bf16", outputs) in vectors,
        ("pred", rows) in vectors,
    )  # fmt: skip


def arguments(layer):
    rows, (outputs, depth) = layer.inputs[0][0], layer.weight
    made = {"weight": ((outputs, depth), "bf16"), "inputs": [(dims, "bf16") for dims in layer.inputs]}
    parts = {
        "norm": (rows, "f32"),
        "scale": (depth, "bf16"),
        "bias": (outputs, "bf16"),
        "mask": (rows, "pred"),
    }
    return made | {name: ((size,), dtype) for name, (size, dtype) in parts.items() if getattr(layer, name)}


def product(given):
    x = functools.reduce(jnp.add, [value.astype(jnp.float32) for value in given["inputs"]])
    depth = given["weight"].shape[1]
    if x.shape[-1] == 2 * depth:
        x = jax.nn.silu(x[:, :depth]) * x[:, depth:]
    if "norm" in given:
        x = x * given["norm"][:, None]
    x = x.astype(jnp.bfloat16)
    if "scale" in given:
        x = x * given["scale"]
    if "mask" in given:
        x = jnp.where(given["mask"][:, None], x, 0)
    y = jax.lax.dot_general(x, given["weight"], (((1,), (1,)), ((), ())))
    return y + given["bias"] if "bias" in given else y


@functools.cache
def device():
    return topologies.get_topology_desc(platform="tpu", topology_name=TARGET).devices[0]


@functools.cache
def compiled_ns(layer):
    """Nanoseconds that the cost model gives the fusions with a product; NaN where it gives none."""
    placed = jax.sharding.SingleDeviceSharding(device())
    given = jax.tree.map(
        lambda leaf: jax.ShapeDtypeStruct(leaf[0], DTYPES[leaf[1]], sharding=placed),
        arguments(layer),
        is_leaf=lambda leaf: isinstance(leaf, tuple),
    )
    text = jax.jit(product).lower(given).compile().as_text()
    hlo = next(iter(read_modules(text)))
    chip = chip_by_name(CHIP)
    rows = module_tables(hlo, module="m", stage="after_codegen", platform="tpu", chip=chip)["predictions"].to_pylist()
    cycles = [row["estimated_cycles"] for row in rows if row["class"] == "matmul fusion"]
    return sum(cycles) / chip.clock.value * 1e9 if cycles and None not in cycles else np.nan


def rebuilt(text):
    """The class of a fusion as the trace wrote it, and the cost model's time; NaN where it cannot be rebuilt."""
    layer = layer_of(text)
    if layer is None:
        return "matmul fusion", np.nan
    return "matmul fusion" if layer.is_plain else "matmul with fused inputs", compiled_ns(layer)
