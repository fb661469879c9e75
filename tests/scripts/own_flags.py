"""Sets XLA_FLAGS after JAX was imported, and overwrites what was there."""

import os

import jax

os.environ["XLA_FLAGS"] = "--xla_cpu_enable_fast_math=false"

import jax.numpy as jnp

jax.jit(lambda x: x * 2)(jnp.ones(3))
print("flags", os.environ["XLA_FLAGS"])
