"""A training step of two layers on a mesh with 2x2 devices: weights sharded over both axes, the batch over one.

hlotrace capture examples/train_step_fsdp.py --target v5e:2x2
XLA_FLAGS=--xla_force_host_platform_device_count=4 hlotrace capture examples/train_step_fsdp.py
"""

from functools import partial

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

LAYERS, BATCH, LENGTH = 2, 4, 128
MODEL, HEADS, HIDDEN, VOCABULARY = 512, 8, 1536, 4096
LEARNING_RATE, MOMENTUM = 1e-2, 0.9

SHARDING = {
    "embedding": P(None, "model"),
    "qkv": P("fsdp", "model"),
    "out": P("model", "fsdp"),
    "gate": P("fsdp", "model"),
    "up": P("fsdp", "model"),
    "down": P("model", "fsdp"),
}
ACTIVATIONS = P("fsdp", None, None)


def norm(x):
    return (x * jax.lax.rsqrt(jnp.mean(jnp.square(x.astype(jnp.float32)), -1, keepdims=True) + 1e-6)).astype(x.dtype)


def layer(params, x):
    batch, length, _ = x.shape
    q, k, v = jnp.split((norm(x) @ params["qkv"]).reshape(batch, length, HEADS, -1), 3, axis=-1)
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k, preferred_element_type=jnp.float32) * q.shape[-1] ** -0.5
    scores = jnp.where(jnp.tril(jnp.ones((length, length), bool)), scores, -1e30)
    mixed = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores).astype(x.dtype), v).reshape(x.shape)
    x = x + mixed @ params["out"]
    h = norm(x)
    return x + (jax.nn.silu(h @ params["gate"]) * (h @ params["up"])) @ params["down"]


def loss(params, tokens):
    x = jax.lax.with_sharding_constraint(params["embedding"][tokens[:, :-1]], ACTIVATIONS)
    for layer_params in params["layers"]:
        x = jax.checkpoint(layer)(layer_params, x)
    logits = (norm(x) @ params["embedding"].T).astype(jnp.float32)
    picked = jnp.take_along_axis(logits, tokens[:, 1:, None], axis=-1)[..., 0]
    return jnp.mean(jax.nn.logsumexp(logits, axis=-1) - picked)


@partial(jax.jit, donate_argnames=("params", "momentum"))
def train_step(params, momentum, tokens):
    value, gradients = jax.value_and_grad(loss)(params, tokens)
    momentum = jax.tree.map(lambda m, g: MOMENTUM * m + g, momentum, gradients)
    params = jax.tree.map(lambda p, m: p - LEARNING_RATE * m, params, momentum)
    return params, momentum, value


def init(key):
    keys = iter(jax.random.split(key, 1 + 5 * LAYERS))

    def weights(name, rows, columns):
        values = jax.random.normal(next(keys), (rows, columns), jnp.bfloat16) * rows**-0.5
        return jax.device_put(values, SHARDING[name])

    sizes = {
        "qkv": (MODEL, 3 * MODEL),
        "out": (MODEL, MODEL),
        "gate": (MODEL, HIDDEN),
        "up": (MODEL, HIDDEN),
        "down": (HIDDEN, MODEL),
    }
    layers = [{name: weights(name, *size) for name, size in sizes.items()} for _ in range(LAYERS)]
    return {"embedding": weights("embedding", VOCABULARY, MODEL), "layers": layers}


def main():
    mesh = jax.make_mesh((2, 2), ("fsdp", "model"), axis_types=(AxisType.Auto, AxisType.Auto))
    jax.set_mesh(mesh)
    params = init(jax.random.key(0))
    momentum = jax.tree.map(jnp.zeros_like, params)
    for step in range(2):
        tokens = jax.random.randint(jax.random.key(step), (BATCH, LENGTH), 0, VOCABULARY)
        tokens = jax.device_put(tokens, P("fsdp", None))
        params, momentum, value = train_step(params, momentum, tokens)
        print("step", step, "loss", value)


if __name__ == "__main__":
    main()
