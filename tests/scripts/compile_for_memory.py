"""Compile a small program for a target into a dump directory, and print what the compiler says of its memory.

    python compile_for_memory.py PROGRAM TARGET DIRECTORY

Prints JSON: the figures of `memory_analysis()`, or `error` with the compiler's message.
"""

import json
import os
import sys

os.environ |= {"JAX_PLATFORMS": "cpu", "TPU_SKIP_MDS_QUERY": "1", "ALLOW_MULTIPLE_LIBTPU_LOAD": "1"}

import jax
import jax.numpy as jnp

PROGRAM, TARGET, OUT = sys.argv[1:]


def device():
    if TARGET == "cpu":
        return jax.devices()[0]
    from jax.experimental import topologies

    return topologies.get_topology_desc(platform="tpu", topology_name=TARGET).devices[0]


SHARDING = jax.sharding.SingleDeviceSharding(device())


def shape(*dims, dtype=jnp.bfloat16):
    return jax.ShapeDtypeStruct(dims, dtype, sharding=SHARDING)


def layer(x, weights):
    up, down = weights
    return x + jax.nn.relu(x @ up) @ down, x.astype(jnp.float32).sum()


def loss(weights, x):
    x, sums = jax.lax.scan(layer, x, weights)
    return x.astype(jnp.float32).mean() + sums.sum()


def step(weights, momentum, x):
    gradient = jax.grad(loss)(weights, x)
    momentum = jax.tree.map(lambda m, g: 0.9 * m + g, momentum, gradient)
    return jax.tree.map(lambda w, m: w - 0.01 * m, weights, momentum), momentum


def huge(x, w):
    return jnp.tanh(x @ w) @ w.T


WEIGHTS = (shape(3, 128, 257), shape(3, 257, 128))
PROGRAMS = {
    "scan_gradient": lambda: jax.jit(jax.grad(loss)).lower(WEIGHTS, shape(33, 128)),
    "donated_step": lambda: jax.jit(step, donate_argnums=(0, 1)).lower(WEIGHTS, WEIGHTS, shape(33, 128)),
    "too_big": lambda: jax.jit(huge).lower(shape(32768, 32768), shape(32768, 131072)),
}
OPTIONS = {"xla_dump_to": OUT, "xla_dump_hlo_as_text": True, "xla_dump_hlo_as_proto": True}
FIGURES = ("argument", "output", "alias", "temp", "generated_code")

try:
    found = PROGRAMS[PROGRAM]().compile(compiler_options=OPTIONS).memory_analysis()
    print(json.dumps({name: getattr(found, f"{name}_size_in_bytes") for name in FIGURES}))
except jax.errors.JaxRuntimeError as error:
    print(json.dumps({"error": str(error)}))
