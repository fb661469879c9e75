"""Wants more devices than there are: a pmap over so many, or a check of its own."""

import sys

import jax
import jax.numpy as jnp

if sys.argv[1] == "assert":
    assert jax.device_count() == 16, jax.device_count()
print(jax.pmap(lambda x: x * 2)(jnp.ones((int(sys.argv[2]), 4))).shape)
