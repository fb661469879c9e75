"""A mesh across two slices."""

import jax
import jax.numpy as jnp
from jax.experimental import mesh_utils
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

print("slices", [device.slice_index for device in jax.devices()])
devices = mesh_utils.create_hybrid_device_mesh((2, 2), (2, 1))
print("mesh", [device.id for device in devices.flat])
mesh = Mesh(devices, ("data", "model"))


@jax.jit
def across(x):
    return (x @ x.T).sum()


across(jax.device_put(jnp.ones((64, 64)), NamedSharding(mesh, P("data", "model"))))
