"""Trains an 8-billion-parameter language model, FSDP over 16 chips: flax nnx, optax adamw, layers scanned and remat.

    hlotrace capture examples/train_8b_fsdp.py --target v5e:4x4

Compile-only, nothing of it runs: a laptop's memory is enough.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

DEVICES = 16
LAYERS, MODEL, HEADS, KV_HEADS, HIDDEN, VOCABULARY = 32, 4096, 32, 8, 14336, 128_256
HEAD = MODEL // HEADS
BATCH, LENGTH = 16, 2048
STEPS = 3

jax.config.update("jax_default_prng_impl", "unsafe_rbg")  # cheaper than threefry on TPUs, to run and to compile


def linear(features_in, features_out, spec, rngs):
    return nnx.Linear(
        features_in,
        features_out,
        use_bias=False,
        dtype=jnp.bfloat16,
        kernel_init=nnx.with_partitioning(nnx.initializers.normal(features_in**-0.5), spec),
        rngs=rngs,
    )


def rms_norm(rngs):
    return nnx.RMSNorm(MODEL, dtype=jnp.bfloat16, rngs=rngs)


def rotary(x):
    positions = jnp.arange(x.shape[1], dtype=jnp.float32)
    frequencies = 500_000.0 ** -(jnp.arange(0, HEAD, 2, dtype=jnp.float32) / HEAD)
    angles = positions[:, None, None] * frequencies
    first, second = jnp.split(x.astype(jnp.float32), 2, axis=-1)
    turned = (first * jnp.cos(angles) - second * jnp.sin(angles), second * jnp.cos(angles) + first * jnp.sin(angles))
    return jnp.concatenate(turned, axis=-1).astype(x.dtype)


class Attention(nnx.Module):
    def __init__(self, rngs):
        self.q = linear(MODEL, HEADS * HEAD, ("fsdp", None), rngs)
        self.k = linear(MODEL, KV_HEADS * HEAD, ("fsdp", None), rngs)
        self.v = linear(MODEL, KV_HEADS * HEAD, ("fsdp", None), rngs)
        self.out = linear(HEADS * HEAD, MODEL, (None, "fsdp"), rngs)

    def __call__(self, x):
        batch, length, _ = x.shape
        q = rotary(self.q(x).reshape(batch, length, HEADS, HEAD))
        k = rotary(self.k(x).reshape(batch, length, KV_HEADS, HEAD))
        v = self.v(x).reshape(batch, length, KV_HEADS, HEAD)
        mixed = jax.nn.dot_product_attention(q, k, v, is_causal=True)
        return self.out(mixed.reshape(batch, length, HEADS * HEAD))


class FeedForward(nnx.Module):
    def __init__(self, rngs):
        self.gate = linear(MODEL, HIDDEN, ("fsdp", None), rngs)
        self.up = linear(MODEL, HIDDEN, ("fsdp", None), rngs)
        self.down = linear(HIDDEN, MODEL, (None, "fsdp"), rngs)

    def __call__(self, x):
        return self.down(nnx.silu(self.gate(x)) * self.up(x))


class Layer(nnx.Module):
    def __init__(self, rngs):
        self.attention_norm = rms_norm(rngs)
        self.attention = Attention(rngs)
        self.ffn_norm = rms_norm(rngs)
        self.ffn = FeedForward(rngs)

    def __call__(self, x):
        x = x + self.attention(self.attention_norm(x))
        x = x + self.ffn(self.ffn_norm(x))
        return jax.lax.with_sharding_constraint(x, P("fsdp", None, None))


class LanguageModel(nnx.Module):
    def __init__(self, rngs):
        self.embedding = nnx.Embed(
            VOCABULARY,
            MODEL,
            dtype=jnp.bfloat16,
            embedding_init=nnx.with_partitioning(nnx.initializers.normal(0.02), (None, "fsdp")),
            rngs=rngs,
        )

        @nnx.split_rngs(splits=LAYERS)
        @partial(nnx.vmap, axis_size=LAYERS, transform_metadata={nnx.PARTITION_NAME: None})
        def make_layers(rngs):
            return Layer(rngs)

        self.layers = make_layers(rngs)
        self.norm = rms_norm(rngs)
        self.head = linear(MODEL, VOCABULARY, ("fsdp", None), rngs)

    def __call__(self, tokens):
        @partial(nnx.scan, in_axes=(0, nnx.Carry), out_axes=nnx.Carry)
        @nnx.remat
        def run_layers(layer, x):
            return layer(x)

        x = jax.lax.with_sharding_constraint(self.embedding(tokens), P("fsdp", None, None))
        return self.head(self.norm(run_layers(self.layers, x)))


@nnx.jit
def create():
    model = LanguageModel(nnx.Rngs(0))
    schedule = optax.warmup_cosine_decay_schedule(0.0, 3e-4, 2_000, 100_000)
    transform = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(schedule, b2=0.95, weight_decay=0.1))
    return model, nnx.Optimizer(model, transform, wrt=nnx.Param)


@partial(nnx.jit, donate_argnames=("model", "optimizer"))
def train_step(model, optimizer, tokens):
    def loss_fn(model):
        logits = model(tokens[:, :-1]).astype(jnp.float32)
        return optax.softmax_cross_entropy_with_integer_labels(logits, tokens[:, 1:]).mean()

    loss, gradients = nnx.value_and_grad(loss_fn)(model)
    optimizer.update(model, gradients)
    return loss


def main():
    mesh = jax.make_mesh((DEVICES,), ("fsdp",), axis_types=(AxisType.Auto,))
    jax.set_mesh(mesh)
    model, optimizer = create()
    count = sum(leaf.size for leaf in jax.tree.leaves(nnx.state(model, nnx.Param)))
    print(f"{count / 1e9:.2f} billion parameters")
    random = np.random.default_rng(0)
    for step in range(STEPS):
        batch = random.integers(VOCABULARY, size=(BATCH, LENGTH + 1), dtype=np.int32)
        loss = train_step(model, optimizer, jax.device_put(batch, P("fsdp", None)))
        print("step", step, "loss", loss)


if __name__ == "__main__":
    main()
