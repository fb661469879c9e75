"""Chooses its program by the platform, as kernels with a fallback do."""

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl

print("told", jax.default_backend(), jax.devices()[0].platform, jax.devices()[0].device_kind)
x = jnp.full((8, 128), 2.0)


@jax.jit
def branches(x):
    return x @ x.T if jax.default_backend() == "tpu" else x + x


@jax.jit
def doubles(x):
    def kernel(source, target):
        target[...] = source[...] * 2

    return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)


print("branches", float(branches(x)[0, 0]))
print("kernel", float(doubles(x)[0, 0]))
