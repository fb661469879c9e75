"""Pallas kernels for a TPU: in a program, called eagerly, and a library's."""

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas.ops.tpu import flash_attention


def add_kernel(x_ref, y_ref, out_ref):
    out_ref[...] = x_ref[...] + y_ref[...]


@jax.jit
def adds(x, y):
    block = pl.BlockSpec((64, 128), lambda i: (i, 0))
    out = jax.ShapeDtypeStruct(x.shape, x.dtype)
    return pl.pallas_call(add_kernel, out_shape=out, grid=(4,), in_specs=[block] * 2, out_specs=block)(x, y)


x = jnp.ones((256, 128))
print("in a program", adds(x, x).shape)
print("eager", pl.pallas_call(add_kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x, x).shape)
q = jnp.ones((1, 2, 256, 128), jnp.bfloat16)
print("library", flash_attention.flash_attention(q, q, q, causal=True).shape)


@jax.jit
def too_large(a):
    return a * 2 + a[::-1], (a * a).sum()


print("too large", too_large(jnp.ones(1 << 32))[0].shape)
try:
    too_large.lower(jax.ShapeDtypeStruct((1 << 33,), jnp.float32)).compile()
except Exception as error:
    print("ahead of time", type(error).__name__)


@jax.jit
def ill_blocked(x):
    spec = pl.BlockSpec((50, 7), lambda i: (i, 0))
    out = jax.ShapeDtypeStruct(x.shape, x.dtype)
    return pl.pallas_call(add_kernel, out_shape=out, grid=(2,), in_specs=[spec] * 2, out_specs=spec)(x, x)


ill_blocked(jnp.ones((100, 100)))
