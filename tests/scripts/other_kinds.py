"""A topology of the script's own, host memory, mutable arrays, and a jit of everything for a backend by name."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import topologies
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

warnings.simplefilter("ignore")
described = topologies.get_topology_desc("v6e:2x2", "tpu")
their_mesh = Mesh(np.array(described.devices).reshape(2, 2), ("a", "b"))


@jax.jit
def ahead(x):
    return x @ x.T


struct = jax.ShapeDtypeStruct((256, 256), jnp.bfloat16, sharding=NamedSharding(their_mesh, P("a", "b")))
print("ahead", ahead.lower(struct).compile().memory_analysis().argument_size_in_bytes)

mesh = jax.make_mesh((jax.device_count(),), ("x",), axis_types=(AxisType.Auto,))
rows = NamedSharding(mesh, P("x"))
host = rows.with_memory_kind("pinned_host")


@jax.jit
def offloads(a):
    on_device = jax.device_put(a, jax.memory.Space.Device)
    return jax.device_put(on_device + 1, jax.memory.Space.Host), on_device.sum()


x = jax.device_put(np.ones((1024, 1024), np.float32), host)
print("offloads", offloads(x)[0].sharding.memory_kind)


@jax.jit
def mutates(ref, value):
    ref[...] = value
    return value + 1


mutates(jax.new_ref(jnp.zeros(4)), jnp.ones(4))
print("by name", jax.jit(lambda named: named + 1, backend=jax.default_backend())(jnp.ones(3)).shape)
