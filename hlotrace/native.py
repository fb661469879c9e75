"""Loops that run as native code: compiled once a machine by numba, then loaded without importing numba.

Importing numba and making its first call takes one to two seconds, more than most commands here take altogether. So the
machine code that numba made is kept beside the module (or in the user's cache directory) and loaded through llvmlite,
which takes milliseconds. A module of kernels looks like this:

    @inner
    def _double(value: int) -> int: ...

    @kernel
    def fill(data: Bytes, out: Ints) -> int: ...

A kernel takes integers, floats and contiguous arrays of the types named here, and gives an integer. It writes results
into arrays that it was given: it may not allocate, raise, or touch Python objects, and it checks its own bounds. What a
kernel calls may stand in other modules. An array that is passed on through many calls is better taken as a pointer,
which has no length and no negative places.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import importlib.metadata
import inspect
import json
import os
import platform
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from types import FunctionType, ModuleType
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
    BytesAt = NDArray[np.uint8]
    IntsAt = NDArray[np.int64]
    Ints32At = NDArray[np.int32]

ARRAYS = {
    "Bytes": ("uint8", 1),
    "Ints": ("int64", 1),
    "Ints32": ("int32", 1),
    "Rows": ("int64", 2),
    "Rows32": ("int32", 2),
    "Floats": ("float64", 1),
}
"""Array annotations: the element type and the number of dimensions."""

POINTERS = {"BytesAt": ("uint8", 1), "IntsAt": ("int64", 1), "Ints32At": ("int32", 1)}
"""Annotations of arrays that a kernel gets as a pointer to their first element."""

SCALARS = {"int": "int64", "float": "float64"}

_Function = TypeVar("_Function", bound=Callable[..., Any])
_INNER = "__hlotrace_inner__"


def inner(function: _Function) -> _Function:
    """A function that kernels call; plain Python to everyone else."""
    setattr(function, _INNER, True)
    return function


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
            if kind in SCALARS:
                flat.append(argument)
                continue
            dtype, dimensions = ARRAYS[kind] if kind in ARRAYS else POINTERS[kind]
            if argument.dtype != dtype or argument.ndim != dimensions or not argument.flags.c_contiguous:
                raise TypeError(f"{self.__name__} takes contiguous {dtype} arrays of {dimensions} dimensions")
            flat.append(argument.ctypes.data)
            flat.extend(argument.shape if kind in ARRAYS else ())
        result: int = self._native(*flat)
        return result

    @cached_property
    def _native(self) -> Callable[..., int]:
        parameters: list[Any] = []
        for kind in self._types:
            if kind in ARRAYS:
                parameters += [ctypes.c_void_p, *[ctypes.c_int64] * ARRAYS[kind][1]]
            elif kind in POINTERS:
                parameters.append(ctypes.c_void_p)
            else:
                parameters.append(ctypes.c_double if kind == "float" else ctypes.c_int64)
        address = _addresses(sys.modules[self.python.__module__])[self.__name__]
        native: Callable[..., int] = ctypes.CFUNCTYPE(ctypes.c_int64, *parameters)(address)
        return native


def kernel(function: Callable[..., int]) -> Kernel:
    """A kernel of this module; its annotations say what it takes."""
    return Kernel(function)


def _annotations(function: Callable[..., int]) -> list[str]:
    kinds = [str(parameter.annotation) for parameter in inspect.signature(function).parameters.values()]
    unknown = [kind for kind in kinds if kind not in ARRAYS | POINTERS | SCALARS]
    if unknown:
        raise TypeError(f"{function.__name__}: a kernel cannot take {', '.join(unknown)}")
    return kinds


before_compiling: list[Callable[[], object]] = []
"""Called each time a module's kernels are about to be compiled, which takes seconds: the command line says so."""

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
    """Kernel name → (symbol, object file), made by numba."""
    compiled: dict[Callable[..., Any], Any] = {}
    return {kernel.__name__: _compile_kernel(kernel.python, compiled) for kernel in _kernels(module)}


def _kernels(module: ModuleType) -> list[Kernel]:
    return [value for value in vars(module).values() if isinstance(value, Kernel)]


def _globals_of(function: Callable[..., Any]) -> dict[str, Any]:
    """The globals that a function names."""
    names: dict[str, Any] = function.__globals__
    return {name: names[name] for name in function.__code__.co_names if name in names}


def _with_compiled_calls(function: Callable[..., Any], compiled: dict[Callable[..., Any], Any]) -> Any:
    """The function as numba has it, and so the inner functions that it calls; each is compiled once."""
    import numba

    if function not in compiled:
        scope = dict(function.__globals__)
        for name, value in _globals_of(function).items():
            if getattr(value, _INNER, False):
                scope[name] = _with_compiled_calls(value, compiled)
        copy = FunctionType(function.__code__, scope, function.__name__)
        options = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
        compiled[function] = numba.njit(copy, error_model="numpy", nogil=True, **options)
    return compiled[function]


def _compile_kernel(function: Callable[..., int], compiled: dict[Callable[..., Any], Any]) -> tuple[str, bytes]:
    import numba
    from numba import types

    kinds = _annotations(function)
    parameters: list[Any] = []
    names: list[str] = []
    passed: list[str] = []
    for position, kind in enumerate(kinds):
        name = f"a{position}"
        names.append(name)
        if kind not in ARRAYS:
            scalar = getattr(types, SCALARS[kind] if kind in SCALARS else POINTERS[kind][0])
            parameters.append(types.CPointer(scalar) if kind in POINTERS else scalar)
            passed.append(name)
            continue
        dtype, dimensions = ARRAYS[kind]
        sizes = [f"{name}_{axis}" for axis in range(dimensions)]
        parameters += [types.CPointer(getattr(types, dtype)), *[types.int64] * dimensions]
        names += sizes
        passed.append(f"carray({name}, ({', '.join(sizes)},))")
    scope: dict[str, Any] = {"carray": numba.carray, "body": _with_compiled_calls(function, compiled)}
    exec(f"def entry({', '.join(names)}):\n    return body({', '.join(passed)})", scope)
    entry = numba.cfunc(types.int64(*parameters), nopython=True, error_model="numpy")(scope["entry"])
    if "@NRT_MemInfo_alloc" in entry.inspect_llvm():
        raise TypeError(f"{function.__name__} allocates memory, which a kernel may not do")
    return entry.native_name, entry._library._get_compiled_object()


def _code_name(module: ModuleType) -> str:
    """The name of the file that keeps a module's code: it changes with the source, the compiler and the processor."""
    import llvmlite.binding as llvm

    features = llvm.get_host_cpu_features().flatten()
    versions = [importlib.metadata.version(package) for package in ("numba", "llvmlite")]
    parts = [*versions, platform.machine(), sys.platform, sys.version, llvm.get_host_cpu_name(), features]
    digest = hashlib.sha256("\0".join(parts).encode())
    for part in _made_from(module):
        digest.update(part)
    return f"{module.__name__.rpartition('.')[2]}.{digest.hexdigest()[:20]}.native"


def _functions_used(module: ModuleType) -> list[Callable[..., Any]]:
    """The kernels of a module, and all that they call."""
    functions: list[Callable[..., Any]] = [kernel.python for kernel in _kernels(module)]
    for function in functions:
        called = [value for value in _globals_of(function).values() if getattr(value, _INNER, False)]
        functions.extend(value for value in called if value not in functions)
    return functions


def _made_from(module: ModuleType) -> Iterator[bytes]:
    """What a module's code is made from: files, and constants from other files."""
    import numpy as np

    assert module.__file__ is not None
    files = {__file__, module.__file__}
    for function in _functions_used(module):
        files.add(function.__code__.co_filename)
        for name, value in sorted(_globals_of(function).items()):
            if isinstance(value, ModuleType) and value.__name__.startswith("hlotrace.") and value.__file__:
                files.add(value.__file__)
            elif isinstance(value, np.ndarray):
                yield value.tobytes()
            elif isinstance(value, int | float | tuple):
                yield f"{name}={value}".encode()
    for file in sorted(files):
        yield Path(file).read_bytes()


def _places(module: ModuleType) -> list[Path]:
    """Where code may be kept: beside the module, else in the user's cache directory."""
    assert module.__file__ is not None
    places = [Path(module.__file__).parent / "__pycache__"]
    with contextlib.suppress(RuntimeError):  # no home directory
        places.append(user_cache() / "native")
    return places


def user_cache() -> Path:
    """The user's cache directory, by the platform's custom; `HLOTRACE_CACHE_DIR` overrides it."""
    if override := os.environ.get("HLOTRACE_CACHE_DIR"):
        return Path(override)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local")) / "hlotrace" / "Cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "hlotrace"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hlotrace"


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
    for tell in before_compiling:
        tell()
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
