import os
import signal

import jax
import jax.numpy as jnp

jax.jit(lambda x: x * 2)(jnp.ones(3))
os.kill(os.getpid(), signal.SIGINT)
jax.jit(lambda x: x * 3)(jnp.ones(3))
