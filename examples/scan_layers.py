"""Twelve layers as one scan, and the gradient through it: two loops with twelve trips, and stacked activations.

hlotrace capture examples/scan_layers.py --target v6e
"""

import jax
import jax.numpy as jnp

LAYERS, TOKENS, MODEL, HIDDEN = 12, 256, 256, 1024


def layer(x, params):
    normed = (x * jax.lax.rsqrt(jnp.mean(jnp.square(x.astype(jnp.float32)), -1, keepdims=True) + 1e-6)).astype(x.dtype)
    return x + jax.nn.gelu(normed @ params["up"]) @ params["down"], None


def loss(params, x):
    x, _ = jax.lax.scan(layer, x, params)
    return jnp.mean(jnp.square(x.astype(jnp.float32)))


@jax.jit
def scan_layers(params, x):
    return jax.value_and_grad(loss)(params, x)


def main():
    up, down, data = jax.random.split(jax.random.key(0), 3)
    params = {
        "up": jax.random.normal(up, (LAYERS, MODEL, HIDDEN), jnp.bfloat16) * MODEL**-0.5,
        "down": jax.random.normal(down, (LAYERS, HIDDEN, MODEL), jnp.bfloat16) * HIDDEN**-0.5,
    }
    x = jax.random.normal(data, (TOKENS, MODEL), jnp.bfloat16)
    value, gradients = scan_layers(params, x)
    print("loss", value, "gradients", jax.tree.map(jnp.shape, gradients))


if __name__ == "__main__":
    main()
