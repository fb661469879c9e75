"""Training steps as Equinox, flax nnx and flax linen write them."""

import equinox as eqx
import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from flax import nnx


class Mlp(eqx.Module):
    linear: eqx.nn.Linear
    scale: jax.Array

    def __call__(self, x):
        return self.linear(x) * self.scale


eqx_model = Mlp(eqx.nn.Linear(8, 8, key=jax.random.key(0)), jnp.ones(8))
adam = optax.adam(1e-3)


@eqx.filter_jit
def equinox_step(model, opt_state, x, steps=1):
    gradient = eqx.filter_grad(lambda m: jnp.mean(jax.vmap(m)(x) ** 2) * steps)(model)
    updates, opt_state = adam.update(gradient, opt_state, model)
    return eqx.apply_updates(model, updates), opt_state


equinox_step(eqx_model, adam.init(eqx.filter(eqx_model, eqx.is_array)), jnp.ones((4, 8)), steps=2)


class Net(nnx.Module):
    def __init__(self, rngs):
        self.inputs = nnx.Linear(8, 16, rngs=rngs)
        self.blocks = nnx.List([nnx.Linear(16, 16, rngs=rngs) for _ in range(2)])

    def __call__(self, x):
        x = self.inputs(x)
        for block in self.blocks:
            x = nnx.relu(block(x))
        return x


@nnx.jit
def create():
    return Net(nnx.Rngs(0))


net = create()
optimizer = nnx.Optimizer(net, optax.adamw(1e-3), wrt=nnx.Param)


@nnx.jit
def nnx_step(net, optimizer, x):
    loss, gradient = nnx.value_and_grad(lambda net: jnp.mean(net(x) ** 2))(net)
    optimizer.update(net, gradient)
    return loss


for _ in range(2):
    nnx_step(net, optimizer, jnp.ones((4, 8)))


class Linen(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(4, name="up")(x)


linen = Linen()
params = jax.jit(linen.init)(jax.random.key(1), jnp.ones((2, 8)))
linen.apply(params, jnp.ones((2, 8)))
