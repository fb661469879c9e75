"""Programs made in every way that jit is used; each has a name of its own."""

import functools
import warnings

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

warnings.simplefilter("ignore")
x = jnp.ones((8, 8))


@jax.jit
def plain(x):
    return x + 1


@functools.partial(jax.jit, static_argnums=(1,), static_argnames=("mode",))
def static(x, n, *, mode="a"):
    return x**n + len(mode)


def scaled(x, *, scale):
    return x * scale


def logged(function):
    @functools.wraps(function)
    def wrapper(*args):
        return function(*args)

    return wrapper


@jax.jit
@logged
def decorated(params, x):
    return jnp.tanh(x @ params["layers"][0]["wq"]) * params["scale"]


@functools.partial(jax.jit, donate_argnames=("state",))
def donated(state, gradient):
    return jax.tree.map(lambda a, b: a - b, state, gradient)


class Model:
    def __init__(self):
        self.w = jnp.ones((8, 8))

    @functools.partial(jax.jit, static_argnums=0)
    def static_self(self, x):
        return x @ self.w

    def bound(self, x):
        return x - self.w


def outer():
    @jax.jit
    def inner(x):
        return jnp.cos(x)

    return inner


@jax.jit
def calls_jitted(x):
    return plain(x) + outer()(x)


@jax.jit
def ahead_of_time(x):
    return x @ x


@jax.jit
def traced_first(x):
    return x * 3


@jax.jit
def called_back(x):
    jax.debug.callback(lambda value: None, x.sum())
    return jax.pure_callback(lambda a: np.asarray(a) * 2, jax.ShapeDtypeStruct(x.shape, x.dtype), x)


@jax.jit
def with_keys(key):
    return jax.random.split(key)


def body(carry, row):
    return carry + row, carry


for _ in range(3):
    plain(x)
static(x, 3)
static(x, 4, mode="bb")
jax.jit(functools.partial(scaled, scale=3.0))(x)
decorated({"layers": [{"wq": x}], "scale": 2.0}, x)
state = donated({"a": jnp.ones(8), "b": [jnp.ones(2)]}, {"a": jnp.ones(8), "b": [jnp.ones(2)]})
model = Model()
model.static_self(x)
jax.jit(model.bound)(x)
outer()(x)
calls_jitted(x)
jax.jit(jax.grad(lambda x: plain(x).sum()))(x)
jax.grad(lambda x: decorated({"layers": [{"wq": x}], "scale": 2.0}, x).sum())(x)
compiled = ahead_of_time.lower(x).compile()
assert compiled(x).shape == (8, 8)
assert compiled.memory_analysis() is not None
traced_first.trace(jax.ShapeDtypeStruct((4,), jnp.int8)).lower().compile()
called_back(x)
assert with_keys(jax.random.key(0)).dtype == jax.random.key(0).dtype
jax.lax.scan(body, jnp.zeros(8), x)
jax.jit(jax.nn.softmax)(x)
for size in (1, 2, 3):
    plain(jnp.ones(size))
for _ in range(3):
    jax.jit(lambda again: again * 5)(x)

count = jax.device_count()
mesh = jax.make_mesh((count,), ("data",), axis_types=(AxisType.Auto,))
rows = NamedSharding(mesh, P("data"))


@functools.partial(jax.jit, in_shardings=rows, out_shardings=NamedSharding(mesh, P()))
def asks_for_shardings(y):
    return y * 2


@jax.jit
@functools.partial(jax.shard_map, mesh=mesh, in_specs=P("data"), out_specs=P())
def sharded_map(a):
    return jax.lax.psum(a, "data")


@functools.partial(jax.pmap, axis_name="i")
def mapped(weights, a):
    return jax.lax.psum(a * weights["w"], "i")


asks_for_shardings(np.ones((count * 4, 8), np.float32))
placed = jax.device_put(jnp.ones((count * 4, 8)), rows)
sharded_map(placed)
mapped({"w": jnp.ones((count, 3))}, jnp.ones((count, 3)))
explicit = jax.make_mesh((count,), ("model",), axis_types=(AxisType.Explicit,))
with jax.set_mesh(explicit):
    z = jax.device_put(jnp.ones((count * 2, 4)), P("model"))

    @jax.jit
    def explicit_axes(z):
        return jnp.sin(z) @ jnp.ones((4, 4))

    assert explicit_axes(z).sharding.spec == P("model", None)
print("calls return", plain(x).shape, asks_for_shardings(np.ones((count * 4, 8), np.float32)).sharding.spec)
