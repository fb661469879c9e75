"""A sharded step on four devices, in a mesh of make_mesh and in one of plain order; and what a script is told."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import mesh_utils
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

device = jax.devices()[1]
print("told", jax.default_backend(), device.platform, device.device_kind, tuple(device.coords), jax.device_count())
mesh = jax.make_mesh((2, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
ordered = Mesh(mesh_utils.create_device_mesh((4,)), ("x",))
plain = Mesh(np.array(jax.devices()), ("x",))
print("order", [d.id for d in mesh.devices.flat], [d.id for d in ordered.devices.flat])
w = jax.device_put(np.ones((256, 128), np.float32), NamedSharding(mesh, P(None, "model")))
x = jax.device_put(np.ones((16, 256), np.float32), NamedSharding(mesh, P("data", None)))


@functools.partial(jax.jit, donate_argnums=0)
def step(w, x):
    def loss(w):
        y = jax.lax.with_sharding_constraint(jnp.tanh(x @ w), NamedSharding(mesh, P("data", "model")))
        return jnp.mean(y**2)

    value, gradient = jax.value_and_grad(loss)(w)
    return w - 0.1 * gradient, value


for _ in range(3):
    w, value = step(w, x)
print("step", w.sharding.spec, w.shape, float(value))


@jax.jit
def in_order(a):
    return a.sum()


@jax.jit
def in_plain_order(a):
    return a.sum()


in_order(jax.device_put(jnp.ones((8, 4)), NamedSharding(ordered, P("x"))))
in_plain_order(jax.device_put(jnp.ones((8, 4)), NamedSharding(plain, P("x"))))
