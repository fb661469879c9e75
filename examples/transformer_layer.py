"""One layer of a language model in bf16: grouped-query attention with rotary positions, then a SwiGLU FFN.

hlotrace capture examples/transformer_layer.py
hlotrace capture examples/transformer_layer.py --target v5e
"""

import jax
import jax.numpy as jnp

BATCH, LENGTH = 2, 1024
MODEL, HEADS, KV_HEADS, HIDDEN = 1024, 16, 4, 2816
HEAD = MODEL // HEADS
STEPS = 4


def rms_norm(x, scale):
    variance = jnp.mean(jnp.square(x.astype(jnp.float32)), axis=-1, keepdims=True)
    return (x * jax.lax.rsqrt(variance + 1e-6)).astype(x.dtype) * scale


def rotary(x):
    positions = jnp.arange(x.shape[1], dtype=jnp.float32)
    frequencies = 10_000.0 ** -(jnp.arange(0, HEAD, 2, dtype=jnp.float32) / HEAD)
    angles = positions[:, None, None, None] * frequencies
    first, second = jnp.split(x.astype(jnp.float32), 2, axis=-1)
    turned = (first * jnp.cos(angles) - second * jnp.sin(angles), second * jnp.cos(angles) + first * jnp.sin(angles))
    return jnp.concatenate(turned, axis=-1).astype(x.dtype)


@jax.named_scope("attention")
def attention(params, x):
    batch, length, _ = x.shape
    q = jnp.dot(x, params["wq"]).reshape(batch, length, KV_HEADS, HEADS // KV_HEADS, HEAD)
    k = jnp.dot(x, params["wk"]).reshape(batch, length, KV_HEADS, 1, HEAD)
    v = jnp.dot(x, params["wv"]).reshape(batch, length, KV_HEADS, HEAD)
    scores = jnp.einsum("bqngd,bknd->bngqk", rotary(q), rotary(k)[:, :, :, 0], preferred_element_type=jnp.float32)
    causal = jnp.tril(jnp.ones((length, length), dtype=bool))
    weights = jax.nn.softmax(jnp.where(causal, scores * HEAD**-0.5, -1e30), axis=-1).astype(x.dtype)
    mixed = jnp.einsum("bngqk,bknd->bqngd", weights, v).reshape(batch, length, MODEL)
    return jnp.dot(mixed, params["wo"])


@jax.named_scope("ffn")
def ffn(params, x):
    return jnp.dot(jax.nn.silu(jnp.dot(x, params["w_gate"])) * jnp.dot(x, params["w_up"]), params["w_down"])


@jax.jit
def transformer_layer(params, x):
    x = x + attention(params["attention"], rms_norm(x, params["attention_norm"]))
    return x + ffn(params["ffn"], rms_norm(x, params["ffn_norm"]))


def init(key):
    keys = iter(jax.random.split(key, 7))

    def weights(rows, columns):
        return jax.random.normal(next(keys), (rows, columns), jnp.bfloat16) * rows**-0.5

    return {
        "attention_norm": jnp.ones(MODEL, jnp.bfloat16),
        "attention": {
            "wq": weights(MODEL, MODEL),
            "wk": weights(MODEL, KV_HEADS * HEAD),
            "wv": weights(MODEL, KV_HEADS * HEAD),
            "wo": weights(MODEL, MODEL),
        },
        "ffn_norm": jnp.ones(MODEL, jnp.bfloat16),
        "ffn": {"w_gate": weights(MODEL, HIDDEN), "w_up": weights(MODEL, HIDDEN), "w_down": weights(HIDDEN, MODEL)},
    }


def main():
    params = init(jax.random.key(0))
    x = jax.random.normal(jax.random.key(1), (BATCH, LENGTH, MODEL), jnp.bfloat16)
    for _ in range(STEPS):
        x = transformer_layer(params, x)
    print("output", x.shape, x.dtype, "mean square", float(jnp.mean(jnp.square(x.astype(jnp.float32)))))


if __name__ == "__main__":
    main()
