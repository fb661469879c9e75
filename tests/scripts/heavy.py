"""Far larger than this machine's memory: 64 GiB of parameters in every way that a script makes arrays."""

import resource

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((jax.device_count(),), ("fsdp",), axis_types=(AxisType.Auto,))
rows, everywhere = NamedSharding(mesh, P("fsdp")), NamedSharding(mesh, P())
shape = (1 << 20, 4096)
zeros = jnp.zeros(shape)
normal = jax.random.normal(jax.random.key(0), shape)
params = {
    "zeros": jax.device_put(zeros, rows),
    "normal": jax.device_put(normal.astype(jnp.bfloat16) * 2, everywhere),
    "called": jax.make_array_from_callback(
        shape, rows, lambda index: np.zeros((shape[0] // jax.device_count(), shape[1]), np.float32)
    ),
    "other": jax.device_put(normal, jax.devices()[3]),
}
params["other"] = jax.device_put(params["other"], rows)
optimizer = optax.adamw(1e-3)
state = optimizer.init(params["zeros"])
assert params["normal"].sharding == everywhere
assert state[0].mu.sharding.spec == P("fsdp")


@jax.jit
def total(params, state):
    return sum(leaf.astype(jnp.float32).sum() for leaf in jax.tree.leaves((params, state)))


print("total", total(params, state))
print("peak", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024, "MiB")
