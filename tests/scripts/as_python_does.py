"""Says how it is run, and leaves with 3."""

import atexit
import os
import pickle
import sys

import beside_it
import jax
import jax.numpy as jnp


class Point:
    def __init__(self, x):
        self.x = x


atexit.register(lambda: print("atexit ran"))
assert pickle.loads(pickle.dumps(Point(3))).x == 3
assert beside_it.VALUE == 7
assert sys.modules["__main__"].Point is Point
print("argv", sys.argv[1:])
print("name", __name__, os.path.basename(__file__), os.path.isabs(__file__))
print("path", os.path.basename(sys.path[0]), any("hlotrace" in os.path.basename(entry) for entry in sys.path))
print("cwd", os.path.basename(os.getcwd()))
print("environment", sorted(name for name in os.environ if "hlotrace" in os.environ[name].lower()))
print("sum", float(jax.jit(lambda x: x.sum())(jnp.ones(4))))
print("an error message", file=sys.stderr)
sys.exit(3)
