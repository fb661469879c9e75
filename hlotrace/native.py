"""Loops that run as native code: compiled once a machine by numba, then loaded without importing numba.

Importing numba and making its first call takes one to two seconds, more than most commands here take altogether. So the
machine code that numba made is kept beside the module (or in the user's cache directory) and loaded through llvmlite,
which takes milliseconds. A module of kernels looks like this:

    @inner
    def _double(value: int) -> int: ...

    @kernel
    def fill(data: Bytes, out: Ints) -> int: ...

A kernel takes integers, floats and contiguous arrays of the types named here, and gives an integer. It writes results
into arrays that it was given: it may not allocate, raise, or touch Python objects, and it checks its own bounds.
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib.metadata
import importlib.util
import inspect
import json
import os
import platform
import sys
import tempfile
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Bytes = NDArray[np.uint8]
    Ints = NDArray[np.int64]
    Ints32 = NDArray[np.int32]
    Rows = NDArray[np.int64]
    Rows32 = NDArray[np.int32]
    Floats = NDArray[np.float64]

ARRAYS = {
    "Bytes": ("uint8", 1),
    "Ints": ("int64", 1),
    "Ints32": ("int32", 1),
    "Rows": ("int64", 2),
    "Rows32": ("int32", 2),
    "Floats": ("float64", 1),
}
"""Array annotations: the element type and the number of dimensions."""

SCALARS = {"int": "int64", "float": "float64"}

_Function = TypeVar("_Function", bound=Callable[..., Any])
_compiling: dict[str, Callable[..., Any]] | None = None
"""While a module is compiled: its kernels by name, as plain functions whose globals hold compiled inner functions."""


def inner(function: _Function) -> _Function:
    """A function that kernels of its module call; plain Python to everyone else."""
    if _compiling is None:
        return function
    from numba import njit

    compiled: _Function = njit(function, error_model="numpy", nogil=True)
    return compiled


class Kernel:
    """A kernel that is compiled or loaded when it is first called.

    Attributes:
        python: the plain Python function, which does the same, slowly.
    """

    def __init__(self, function: Callable[..., int]) -> None:
        self.python = function
        self.__doc__ = function.__doc__
        self.__name__ = function.__name__
        self._types = _annotations(function)

    def __call__(self, *arguments: Any) -> int:
        """The kernel's result; `TypeError` when an array has another type or is not contiguous."""
        if len(arguments) != len(self._types):
            raise TypeError(f"{self.__name__} takes {len(self._types)} arguments, not {len(arguments)}")
        flat: list[Any] = []
        for argument, kind in zip(arguments, self._types, strict=True):
            if kind not in ARRAYS:
                flat.append(argument)
                continue
            dtype, dimensions = ARRAYS[kind]
            if argument.dtype != dtype or argument.ndim != dimensions or not argument.flags.c_contiguous:
                raise TypeError(f"{self.__name__} takes contiguous {dtype} arrays of {dimensions} dimensions")
            flat.append(argument.ctypes.data)
            flat.extend(argument.shape)
        result: int = self._native(*flat)
        return result

    @cached_property
    def _native(self) -> Callable[..., int]:
        parameters: list[Any] = []
        for kind in self._types:
            if kind in ARRAYS:
                parameters += [ctypes.c_void_p, *[ctypes.c_int64] * ARRAYS[kind][1]]
            else:
                parameters.append(ctypes.c_double if kind == "float" else ctypes.c_int64)
        address = _addresses(sys.modules[self.python.__module__])[self.__name__]
        native: Callable[..., int] = ctypes.CFUNCTYPE(ctypes.c_int64, *parameters)(address)
        return native


def kernel(function: Callable[..., int]) -> Kernel:
    """A kernel of this module; its annotations say what it takes."""
    if _compiling is not None:
        _compiling[function.__name__] = function
    return Kernel(function)


def _annotations(function: Callable[..., int]) -> list[str]:
    kinds = [str(parameter.annotation) for parameter in inspect.signature(function).parameters.values()]
    unknown = [kind for kind in kinds if kind not in ARRAYS and kind not in SCALARS]
    if unknown:
        raise TypeError(f"{function.__name__}: a kernel cannot take {', '.join(unknown)}")
    return kinds


_loaded: dict[str, dict[str, int]] = {}
_engines: list[Any] = []
"""The engines own the code, so they live as long as the process."""


def _addresses(module: ModuleType) -> dict[str, int]:
    """The address of each kernel of a module, compiled now when this machine has not done so before."""
    if module.__name__ not in _loaded:
        kept = _kept_code(module)
        _loaded[module.__name__] = _load(kept if kept is not None else _compile_and_keep(module))
    return _loaded[module.__name__]


def _load(code: dict[str, tuple[str, bytes]]) -> dict[str, int]:
    """Give machine code to the linker: kernel name → (symbol, object file) becomes kernel name → address."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    for _, image in code.values():
        engine.add_object_file(llvm.object_file.ObjectFileRef.from_data(image))
    engine.finalize_object()
    _engines.append(engine)
    return {name: engine.get_function_address(symbol) for name, (symbol, _) in code.items()}


def _compile(module: ModuleType) -> dict[str, tuple[str, bytes]]:
    """Kernel name → (symbol, object file), made by numba from a second copy of the module."""
    global _compiling
    _compiling = {}
    try:
        spec = importlib.util.spec_from_file_location(f"{module.__name__}@native", module.__file__)
        assert spec is not None
        assert spec.loader is not None
        copy = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(copy)
        return {name: _compile_kernel(function) for name, function in _compiling.items()}
    finally:
        _compiling = None


def _compile_kernel(function: Callable[..., int]) -> tuple[str, bytes]:
    import numba
    from numba import types

    kinds = _annotations(function)
    parameters: list[Any] = []
    names: list[str] = []
    passed: list[str] = []
    for position, kind in enumerate(kinds):
        name = f"a{position}"
        names.append(name)
        if kind in SCALARS:
            parameters.append(getattr(types, SCALARS[kind]))
            passed.append(name)
            continue
        dtype, dimensions = ARRAYS[kind]
        sizes = [f"{name}_{axis}" for axis in range(dimensions)]
        parameters += [types.CPointer(getattr(types, dtype)), *[types.int64] * dimensions]
        names += sizes
        passed.append(f"carray({name}, ({', '.join(sizes)},))")
    body = numba.njit(function, error_model="numpy", nogil=True)
    scope: dict[str, Any] = {"carray": numba.carray, "body": body}
    exec(f"def entry({', '.join(names)}):\n    return body({', '.join(passed)})", scope)
    entry = numba.cfunc(types.int64(*parameters), nopython=True, error_model="numpy")(scope["entry"])
    if "@NRT_MemInfo_alloc" in entry.inspect_llvm():
        raise TypeError(f"{function.__name__} allocates memory, which a kernel may not do")
    return entry.native_name, entry._library._get_compiled_object()


def _code_name(module: ModuleType) -> str:
    """The name of the file that keeps a module's code: it changes with the source, the compiler and the processor."""
    import llvmlite.binding as llvm

    assert module.__file__ is not None
    features = llvm.get_host_cpu_features().flatten()
    versions = [importlib.metadata.version(package) for package in ("numba", "llvmlite")]
    parts = [*versions, platform.machine(), sys.platform, sys.version, llvm.get_host_cpu_name(), features]
    digest = hashlib.sha256("\0".join(parts).encode())
    digest.update(Path(module.__file__).read_bytes())
    digest.update(Path(__file__).read_bytes())
    return f"{module.__name__.rpartition('.')[2]}.{digest.hexdigest()[:20]}.native"


def _places(module: ModuleType) -> list[Path]:
    """Where code may be kept: beside the module, else in the user's cache directory."""
    assert module.__file__ is not None
    user = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser())
    return [Path(module.__file__).parent / "__pycache__", user / "hlotrace" / "native"]


def _kept_code(module: ModuleType) -> dict[str, tuple[str, bytes]] | None:
    name = _code_name(module)
    for place in _places(module):
        try:
            packed = (place / name).read_bytes()
        except OSError:
            continue
        code = _unpacked(packed)
        if code is not None:
            return code
    return None


def _compile_and_keep(module: ModuleType) -> dict[str, tuple[str, bytes]]:
    code = _compile(module)
    for place in _places(module):
        try:
            place.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=place, delete=False) as file:
                file.write(_packed(code))
            Path(file.name).replace(place / _code_name(module))
            break
        except OSError:
            continue
    return code


def _packed(code: dict[str, tuple[str, bytes]]) -> bytes:
    """A digest, a line of JSON that says what follows, and the object files one after another."""
    index = json.dumps([[name, symbol, len(image)] for name, (symbol, image) in code.items()]).encode()
    content = index + b"\n" + b"".join(image for _, image in code.values())
    return hashlib.sha256(content).digest() + content


def _unpacked(packed: bytes) -> dict[str, tuple[str, bytes]] | None:
    """What `_packed` packed; None when it is damaged, since damaged code must not run."""
    digest, content = packed[:32], packed[32:]
    if hashlib.sha256(content).digest() != digest:
        return None
    index, _, images = content.partition(b"\n")
    code, at = {}, 0
    for name, symbol, size in json.loads(index):
        code[name] = (symbol, images[at : at + size])
        at += size
    return code
