"""Puts programs on the host's CPU in every way, as loaders of weights do, beside one for the accelerator."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

cpu = jax.devices("cpu")[0]
same = cpu == jax.local_devices(backend="cpu")[0] and cpu not in jax.devices()
print("devices", cpu.platform, cpu.device_kind, same, jax.device_count(), jax.devices()[0].platform)


def tell(array):
    print("on the host" if array.devices() == {cpu} else array.devices())


@jax.jit
def default_device():
    return [jnp.ones((1024, 1024)) * index for index in range(3)]


@jax.jit
def by_string():
    return jnp.ones(3)


@jax.jit
def follows_data(x):
    return x * 2


def by_backend(x):
    return x + 1


@jax.jit
def on_a_mesh(x):
    return x - 1


@jax.jit
def layer(x, w):
    return x @ w


with jax.default_device(cpu):
    weights = default_device()
tell(weights[0])
with jax.default_device("cpu"):
    tell(by_string())
small = follows_data(jax.device_put(jnp.ones(2), cpu))
tell(small)
print("small", small.tolist())
tell(jax.jit(by_backend, backend="cpu")(np.ones(2)))
mesh = Mesh(np.array([cpu]), ("x",))
tell(on_a_mesh(jax.device_put(np.ones(2), NamedSharding(mesh, PartitionSpec("x")))))

there = jax.devices()[0]
layer(jax.device_put(small, there).reshape(1, 2), jax.device_put(weights[0], there)[:2])
