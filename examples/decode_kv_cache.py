"""Decoding with a KV cache: one token a step for a batch of sequences, through all layers under one scan.

hlotrace capture examples/decode_kv_cache.py --target v5e
hlotrace chips examples/decode_kv_cache.py --targets v5e,v6e,tpu7x
"""

import functools

import jax
import jax.numpy as jnp

BATCH, CONTEXT, VOCABULARY = 16, 2048, 32_000
LAYERS, MODEL, HEADS, KV_HEADS, HIDDEN = 8, 2048, 16, 4, 5632
HEAD = MODEL // HEADS
STEPS = 8


def rms_norm(x, scale):
    variance = jnp.mean(jnp.square(x.astype(jnp.float32)), axis=-1, keepdims=True)
    return (x * jax.lax.rsqrt(variance + 1e-6)).astype(x.dtype) * scale


@jax.named_scope("attention")
def attention(layer, cache, x, position):
    q = (x @ layer["wq"]).reshape(BATCH, KV_HEADS, HEADS // KV_HEADS, HEAD)
    new = {name: (x @ layer[f"w{name}"]).reshape(BATCH, KV_HEADS, 1, HEAD) for name in ("k", "v")}
    cache = {name: jax.lax.dynamic_update_slice_in_dim(cache[name], new[name], position, axis=2) for name in new}
    scores = jnp.einsum("bngd,bnsd->bngs", q, cache["k"], preferred_element_type=jnp.float32) * HEAD**-0.5
    written = jnp.arange(CONTEXT) <= position
    weights = jax.nn.softmax(jnp.where(written, scores, -1e30), axis=-1).astype(x.dtype)
    mixed = jnp.einsum("bngs,bnsd->bngd", weights, cache["v"]).reshape(BATCH, MODEL)
    return mixed @ layer["wo"], cache


@jax.named_scope("ffn")
def ffn(layer, x):
    return (jax.nn.silu(x @ layer["w_gate"]) * (x @ layer["w_up"])) @ layer["w_down"]


@functools.partial(jax.jit, donate_argnames="cache")
def decode_step(params, cache, tokens, position):
    def one_layer(x, inputs):
        layer, cache = inputs
        mixed, cache = attention(layer, cache, rms_norm(x, layer["attention_norm"]), position)
        x = x + mixed
        return x + ffn(layer, rms_norm(x, layer["ffn_norm"])), cache

    x = params["embedding"][tokens]
    x, cache = jax.lax.scan(one_layer, x, (params["layers"], cache))
    logits = rms_norm(x, params["final_norm"]) @ params["embedding"].T
    return jnp.argmax(logits, axis=-1), cache


def init(key):
    shapes = {
        "wq": (MODEL, MODEL),
        "wk": (MODEL, KV_HEADS * HEAD),
        "wv": (MODEL, KV_HEADS * HEAD),
        "wo": (MODEL, MODEL),
        "w_gate": (MODEL, HIDDEN),
        "w_up": (MODEL, HIDDEN),
        "w_down": (HIDDEN, MODEL),
    }
    keys = iter(jax.random.split(key, len(shapes) + 1))

    def weights(*shape):
        return jax.random.normal(next(keys), shape, jnp.bfloat16) * shape[-2] ** -0.5

    layers = {name: weights(LAYERS, *shape) for name, shape in shapes.items()}
    for norm in ("attention_norm", "ffn_norm"):
        layers[norm] = jnp.ones((LAYERS, MODEL), jnp.bfloat16)
    return {
        "embedding": weights(VOCABULARY, MODEL),
        "layers": layers,
        "final_norm": jnp.ones(MODEL, jnp.bfloat16),
    }


def main():
    params = init(jax.random.key(0))
    cache = {name: jnp.zeros((LAYERS, BATCH, KV_HEADS, CONTEXT, HEAD), jnp.bfloat16) for name in ("k", "v")}
    tokens = jnp.zeros(BATCH, jnp.int32)
    for position in range(STEPS):
        tokens, cache = decode_step(params, cache, tokens, jnp.int32(position))
    print("tokens", tokens)


if __name__ == "__main__":
    main()
