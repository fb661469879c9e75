"""Functions compiled by numba for scanning text: pointers and integers in, integers out.

Pointers instead of arrays: an array argument costs numba seven values, bounds for negative places and reference
counts with every call. Every argument is an int64, so that each function is compiled once.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numba
from numba import types

TEXT, MEMORY = types.CPointer(types.uint8), types.CPointer(types.int64)
Pointers = tuple[Any, Any]


def native(function: Callable[..., Any]) -> Any:
    """Compile a function that only other compiled functions call; on disk from then on, where there is a place."""
    options = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError:  # no directory that can be written: compile in every process
        return numba.njit(**options)(function)


def entry_point(*arguments: Any) -> Callable[[Callable[..., Any]], Callable[..., None]]:
    """Compile, at once, a function that Python calls with addresses and integers, and that returns nothing."""
    signature = types.void(*arguments)

    def compiled(function: Callable[..., Any]) -> Callable[..., None]:
        try:
            callback = numba.cfunc(signature, cache=True)(function)
        except RuntimeError:
            callback = numba.cfunc(signature)(function)
        kinds = [ctypes.c_void_p if isinstance(kind, types.CPointer) else ctypes.c_int64 for kind in arguments]
        call = ctypes.CFUNCTYPE(None, *kinds)(callback.address)
        call.compiled = callback  # type: ignore[attr-defined]  # keeps the code alive
        return call

    return compiled
