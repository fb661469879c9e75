"""Who wrote a function: the user, or a library whose helpers are noise around the user's programs."""

from __future__ import annotations

import functools
import inspect
import itertools
import linecache
import os
import sysconfig
from dataclasses import dataclass, replace
from pathlib import Path
from types import CodeType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

LIBRARIES = frozenset(
    {
        "jax", "jaxlib", "jax_plugins", "flax", "optax", "equinox", "chex", "orbax", "haiku", "jmp", "einops",
        "distrax", "rlax", "lineax", "optimistix", "quax", "jaxtyping", "beartype", "numpy", "scipy", "ml_dtypes",
        "hlotrace", "treescope", "tensorstore", "clu", "grain", "tensorflow", "tensorflow_probability",
        "torch", "torchax", "qwix",
    }
)  # fmt: skip
"""Packages whose own functions are helpers. Code of any other package (MaxText, axlearn, ...) is someone's model."""

_OURS = str(Path(__file__).parents[1]) + os.sep
_MAX_WRAPPERS = 32
_MAX_EQUATIONS = 200
_WRAPPED_IN = ("__wrapped__", "func", "f", "fun", "fn", "_fun", "_f", "_fn")


@dataclass(frozen=True)
class Definition:
    """Where a function was written.

    Attributes:
        function: its qualified name.
        place: `file:line` of its `def` or `lambda`.
        parameters: names of its positional parameters.
    """

    function: str
    place: str | None
    parameters: tuple[str, ...] = ()


@functools.cache
def _standard_library() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    return tuple({paths[key] + os.sep for key in ("stdlib", "platstdlib")})


@functools.cache
def is_library(filename: str) -> bool:
    """Whether a source file belongs to Python, or to a package whose functions are helpers."""
    if filename.startswith("<frozen"):
        return True
    parts = Path(filename).parts
    for index in range(len(parts) - 1, -1, -1):
        if parts[index] in ("site-packages", "dist-packages"):
            return index + 1 < len(parts) and parts[index + 1].removesuffix(".py") in LIBRARIES
    return filename.startswith((*_standard_library(), _OURS))


def unwrap(function: Any) -> Any:
    """The innermost function below partial applications, decorators, bound methods and callable objects."""
    for _ in range(_MAX_WRAPPERS):
        inner = _one_layer_in(function)
        if inner is None or inner is function:
            break
        function = inner
    return function


def _one_layer_in(function: Any) -> Any:
    if isinstance(function, functools.partial):
        return function.func
    if inspect.ismethod(function):
        return function.__func__
    wrapped = inspect.getattr_static(function, "__wrapped__", None)
    if wrapped is not None and not isinstance(wrapped, property):
        return wrapped
    if isinstance(function, type):
        return None
    if (mapped := of_pmap(function)) is not None:
        return mapped[0]
    if not hasattr(function, "__code__"):
        for name in _WRAPPED_IN:
            inner = getattr(function, name, None)
            if callable(inner):
                return inner
        call = inspect.getattr_static(type(function), "__call__", None)
        return call if hasattr(call, "__code__") else None
    return None


def of_pmap(function: Any) -> tuple[Any, Any] | None:
    """The function that `jax.pmap` was given, and the tree of its arguments; None of what pmap did not make."""
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    if getattr(function, "__module__", "") != "jax._src.pmap" or not inspect.isfunction(function):
        return None
    held = inspect.getclosurevars(function).nonlocals
    return (held["fun"].f, held["in_tree"]) if {"fun", "in_tree"} <= held.keys() else None


def of_function(function: Any) -> Definition | None:
    """The definition of a user's function, or None when it is a library's."""
    inner = unwrap(function)
    code = getattr(inner, "__code__", None)
    if not isinstance(code, CodeType) or is_library(code.co_filename):
        return None
    return of_any_function(inner)


def of_any_function(function: Any) -> Definition:
    """The definition of a function, whoever wrote it."""
    inner = unwrap(function)
    code = getattr(inner, "__code__", None)
    name = getattr(inner, "__qualname__", None) or type(inner).__qualname__
    return replace(_definition(code), function=name) if isinstance(code, CodeType) else Definition(name, None)


def of_traced(jaxpr: Any) -> Definition | None:
    """The user's function that a library's called while `jaxpr` was traced, or None when it called none.

    A traceback's outermost frame must be the library's: while a gradient is built, JAX gives a helper's equations the
    traceback of the user's line that they belong to.
    """
    for equation in itertools.islice(_own_jaxpr(jaxpr).eqns, _MAX_EQUATIONS):
        codes = _codes(equation)
        if codes and is_library(codes[-1].co_filename) and (code := _outermost_user_code(codes)):
            return _definition(code)
    return None


def of_bodies(jaxpr: Any) -> Definition | None:
    """The user's function that a primitive in `jaxpr` holds, such as a scan's body or a Pallas kernel."""
    sources = (str(inner.debug_info.func_src_info) for inner in _inner_jaxprs(jaxpr) if inner.debug_info is not None)
    return next(filter(None, map(of_source, itertools.islice(sources, _MAX_EQUATIONS))), None)


def of_kernel(jaxpr: Any) -> Definition | None:
    """The function that holds a Pallas kernel, whoever wrote it: only the target's compiler can lower it."""
    for inner in itertools.chain([_own_jaxpr(jaxpr)], _inner_jaxprs(jaxpr)):
        if any(equation.primitive.name == "pallas_call" for equation in inner.eqns):
            name, _, place = str(inner.debug_info.func_src_info).partition(" at ")
            return Definition(name, place or None)
    return None


def of_source(source: str) -> Definition | None:
    """From JAX's text `f at FILE:LINE`, where there is no function to look at; None when it is a library's."""
    name, _, place = source.partition(" at ")
    filename, _, line = place.rpartition(":")
    if not filename or not line.isdigit() or is_library(filename):
        return None
    return Definition(name, _place(filename, int(line), name))


def _definition(code: CodeType) -> Definition:
    place = _place(code.co_filename, code.co_firstlineno, code.co_name)
    return Definition(code.co_qualname, place, code.co_varnames[: code.co_argcount])


def _own_jaxpr(jaxpr: Any) -> Any:
    """The equations' owner: before JAX 0.12 a closed jaxpr wraps it."""
    return getattr(jaxpr, "jaxpr", jaxpr)


def _inner_jaxprs(jaxpr: Any) -> Iterator[Any]:
    """Those in the parameters of a jaxpr's equations, at any depth."""
    for equation in _own_jaxpr(jaxpr).eqns:
        for value in equation.params.values():
            for inner in value if isinstance(value, tuple | list) else (value,):
                if hasattr(inner, "eqns") or hasattr(inner, "jaxpr"):
                    yield _own_jaxpr(inner)
                    yield from _inner_jaxprs(inner)


def _codes(equation: Any) -> list[CodeType]:
    """Of the frames in which an equation was traced, the innermost first, the traced function's last."""
    traceback = getattr(equation.source_info, "traceback", None)
    codes = list(traceback.raw_frames()[0]) if traceback is not None else []
    return list(itertools.takewhile(lambda code: not code.co_name.startswith("trace_to_jaxpr"), codes))


def _outermost_user_code(codes: list[CodeType]) -> CodeType | None:
    users = (code for code in reversed(codes) if code.co_name != "<module>" and not is_library(code.co_filename))
    return next(users, None)


def _place(filename: str, first: int, name: str) -> str:
    """`file:line` of the `def`: a code object's first line is that of its first decorator."""
    for line in range(first, first + 50):
        text = linecache.getline(filename, line).lstrip()
        if text.startswith(("def ", "async def ")) and name in text:
            return f"{filename}:{line}"
        if not text:
            break
    return f"{filename}:{first}"
