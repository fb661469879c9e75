"""Functions whose names, as code generators make them, fit no file name."""

import jax
import jax.numpy as jnp

for length in (1, 150, 200, 250, 300):
    name = "f" * length
    scope = {}
    exec(f"def {name}(x):\n    return x @ x + {length}", scope)
    print(jax.jit(scope[name])(jnp.ones((8, 8))).shape)
