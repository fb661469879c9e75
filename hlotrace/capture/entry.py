"""A function that returns `(fn, args)`, and the compile of one function with its arguments."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hlotrace.errors import CaptureError, unknown_name

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType


def load(entry: str) -> Callable[[], Any]:
    """The function that `module:function` or `file.py:function` names.

    Raises:
        CaptureError: it names no module, or the module has no such function.
    """
    where, _, name = entry.rpartition(":")
    if not where or not name:
        raise CaptureError(
            "expected module:function", place=f"entry {entry}", remedy="For example: --entry mymodel.train:make_step."
        )
    module = _module(where, entry)
    found = module
    for part in name.split("."):
        if not hasattr(found, part):
            functions = [key for key, value in vars(module).items() if callable(value) and not key.startswith("_")]
            raise unknown_name("function", name, functions, place=f"entry {entry}")
        found = getattr(found, part)
    return found  # type: ignore[return-value]


def _module(where: str, entry: str) -> ModuleType:
    if where.endswith(".py"):
        path = Path(where)
        if not path.is_file():
            raise CaptureError("there is no such file", place=f"entry {entry}")
        sys.path.insert(0, str(path.resolve().parent))
        where = path.stem
    else:
        sys.path.insert(0, str(Path.cwd()))
    try:
        found = importlib.util.find_spec(where)
    except ModuleNotFoundError:
        found = None
    if found is None:
        raise CaptureError(
            f"there is no module {where}",
            place=f"entry {entry}",
            remedy=f"Modules are looked up in {Path.cwd()} and in {sys.executable}'s packages.",
        )
    return importlib.import_module(where)


def compile_returned(returned: Any, entry: str, *, run: bool) -> None:
    """Compile what an entry function returned: `(fn, args)`, or `(fn, args, kwargs)`.

    Raises:
        CaptureError: it is something else.
    """
    if not (isinstance(returned, tuple) and len(returned) in (2, 3) and callable(returned[0])):
        raise CaptureError(
            f"expected the function to return (fn, args), found {type(returned).__name__}", place=f"entry {entry}"
        )
    args = returned[1] if isinstance(returned[1], tuple | list) else (returned[1],)
    compile_function(returned[0], *args, **(returned[2] if len(returned) == 3 else {}), run=run)


def compile_function(fn: Any, /, *args: Any, run: bool, **kwargs: Any) -> None:
    """Compile `fn` for its arguments, arrays or `jax.ShapeDtypeStruct`s; with `run`, call it once, structs as zeros."""
    import jax

    jitted = fn if hasattr(fn, "lower") else jax.jit(fn)
    compiled = jitted.lower(*args, **kwargs).compile()
    if run:
        args, kwargs = jax.tree.map(_concrete, (args, kwargs))
        for output in jax.tree.leaves(compiled(*args, **kwargs)):
            output.block_until_ready()


def _concrete(leaf: Any) -> Any:
    import jax

    if not isinstance(leaf, jax.ShapeDtypeStruct):
        return leaf
    from hlotrace.capture.zeros import zeros_like

    sharding = leaf.sharding or jax.sharding.SingleDeviceSharding(jax.devices()[0])
    return zeros_like(jax.core.ShapedArray(leaf.shape, leaf.dtype), sharding, committed=leaf.sharding is not None)
