"""Wraps functions in jit again and again, each closing over an array of its own."""

import gc
import weakref

import jax
import jax.numpy as jnp


def once(i):
    held = jnp.ones((256, 256)) * i
    jax.jit(lambda x: x + held)(jnp.ones(()))
    return weakref.ref(held)


references = [once(i) for i in range(4)]
gc.collect()
print("alive", sum(reference() is not None for reference in references))
