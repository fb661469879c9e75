"""A Pallas kernel for TPU: a matrix product with a fused GELU, tiled over a grid, that states its cost.

hlotrace capture examples/pallas_matmul.py --target v5e
hlotrace chips examples/pallas_matmul.py --targets v5e,v6e,tpu7x
"""

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

ROWS, MODEL, HIDDEN = 4096, 2048, 8192
BLOCK_ROWS, BLOCK_COLUMNS, BLOCK_DEPTH = 512, 1024, 512
STEPS = 4


def kernel(x, w, out, total):
    @pl.when(pl.program_id(2) == 0)
    def _():
        total[...] = jnp.zeros_like(total)

    total[...] += jnp.dot(x[...], w[...], preferred_element_type=jnp.float32)

    @pl.when(pl.program_id(2) == pl.num_programs(2) - 1)
    def _():
        out[...] = jax.nn.gelu(total[...]).astype(out.dtype)


def matmul_gelu(x, w):
    (rows, depth), (_, columns) = x.shape, w.shape
    return pl.pallas_call(
        kernel,
        out_shape=jax.ShapeDtypeStruct((rows, columns), x.dtype),
        grid=(rows // BLOCK_ROWS, columns // BLOCK_COLUMNS, depth // BLOCK_DEPTH),
        in_specs=[
            pl.BlockSpec((BLOCK_ROWS, BLOCK_DEPTH), lambda i, j, k: (i, k)),
            pl.BlockSpec((BLOCK_DEPTH, BLOCK_COLUMNS), lambda i, j, k: (k, j)),
        ],
        out_specs=pl.BlockSpec((BLOCK_ROWS, BLOCK_COLUMNS), lambda i, j, k: (i, j)),
        scratch_shapes=[pltpu.VMEM((BLOCK_ROWS, BLOCK_COLUMNS), jnp.float32)],
        cost_estimate=pl.CostEstimate(
            flops=2 * rows * columns * depth,
            transcendentals=rows * columns,
            bytes_accessed=2 * (rows * depth + depth * columns + rows * columns),
        ),
        name="matmul_gelu",
    )(x, w)


@jax.jit
def ffn(w_up, w_down, x):
    return x + matmul_gelu(x, w_up) @ w_down


def main():
    keys = jax.random.split(jax.random.key(0), 3)
    w_up = jax.random.normal(keys[0], (MODEL, HIDDEN), jnp.bfloat16) * MODEL**-0.5
    w_down = jax.random.normal(keys[1], (HIDDEN, MODEL), jnp.bfloat16) * HIDDEN**-0.5
    x = jax.random.normal(keys[2], (ROWS, MODEL), jnp.bfloat16)
    for _ in range(STEPS):
        x = ffn(w_up, w_down, x)
    print("output", x.shape, x.dtype)


if __name__ == "__main__":
    main()
