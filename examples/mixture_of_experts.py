"""A mixture-of-experts layer: each token goes to two of eight experts, which take up to a fixed number of tokens.

hlotrace capture examples/mixture_of_experts.py --target v5p
hlotrace chips examples/mixture_of_experts.py --targets v5p,v6e,tpu7x
"""

import jax
import jax.numpy as jnp

TOKENS, MODEL, HIDDEN = 4096, 1024, 2816
EXPERTS, CHOSEN, CAPACITY = 8, 2, 1280
STEPS = 4


@jax.named_scope("route")
def route(x, router):
    """For each expert the tokens that it takes, and with which weight; what is beyond its capacity is dropped."""
    scores = jax.nn.softmax((x @ router).astype(jnp.float32), axis=-1)
    weights, experts = jax.lax.top_k(scores, CHOSEN)
    weights = weights / weights.sum(axis=-1, keepdims=True)
    chosen = jax.nn.one_hot(experts.reshape(-1), EXPERTS, dtype=jnp.int32)
    place = (jnp.cumsum(chosen, axis=0) * chosen).sum(axis=-1) - 1
    slot = jnp.where(place < CAPACITY, experts.reshape(-1) * CAPACITY + place, EXPERTS * CAPACITY)
    return weights.reshape(-1), slot


@jax.named_scope("experts")
def expert_ffn(params, x):
    gate = jnp.einsum("ecm,emh->ech", x, params["w_gate"])
    up = jnp.einsum("ecm,emh->ech", x, params["w_up"])
    return jnp.einsum("ech,ehm->ecm", jax.nn.silu(gate) * up, params["w_down"])


@jax.jit
def moe_layer(params, x):
    weights, slot = route(x, params["router"])
    token = jnp.repeat(jnp.arange(TOKENS), CHOSEN)
    taken = jnp.zeros((EXPERTS * CAPACITY + 1, MODEL), x.dtype).at[slot].set(x[token])
    done = expert_ffn(params, taken[:-1].reshape(EXPERTS, CAPACITY, MODEL))
    back = jnp.concatenate([done.reshape(-1, MODEL), jnp.zeros((1, MODEL), x.dtype)])[slot]
    return x + (back * weights[:, None].astype(x.dtype)).reshape(TOKENS, CHOSEN, MODEL).sum(axis=1)


def init(key):
    keys = jax.random.split(key, 4)

    def weights(key, *shape):
        return jax.random.normal(key, shape, jnp.bfloat16) * shape[-2] ** -0.5

    return {
        "router": weights(keys[0], MODEL, EXPERTS),
        "w_gate": weights(keys[1], EXPERTS, MODEL, HIDDEN),
        "w_up": weights(keys[2], EXPERTS, MODEL, HIDDEN),
        "w_down": weights(keys[3], EXPERTS, HIDDEN, MODEL),
    }


def main():
    params = init(jax.random.key(0))
    x = jax.random.normal(jax.random.key(1), (TOKENS, MODEL), jnp.bfloat16)
    for _ in range(STEPS):
        x = moe_layer(params, x)
    print("output", x.shape, x.dtype)


if __name__ == "__main__":
    main()
