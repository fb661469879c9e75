import jax
import jax.numpy as jnp


@jax.jit
def first(x):
    return x * 2


def deeper(x):
    raise ValueError("the learning rate is missing")


first(jnp.ones(3))
deeper(1)
