"""The places inside JAX that a capture takes hold of, one small function each.

None of them is public, so each is looked up by name and checked for the parameters that are used before anything runs:
a JAX that lacks one is told by its name. Known to hold in JAX 0.10 and 0.12.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import sys
import time
from typing import TYPE_CHECKING, Any

from hlotrace.errors import CaptureError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


_JIT_MODULES = ("jax._src.pjit", "jax._src.api", "jax._src.traceback_util")


class Seams:
    """The replaced attributes of JAX's modules, put back by `restore`."""

    def __init__(self) -> None:
        self._replaced: list[tuple[Any, str, Any]] = []

    def replace(
        self,
        module: str,
        attribute: str,
        wrap: Callable[[Any], Any],
        *needs: str,
        optional: bool = False,
        create: bool = False,
    ) -> None:
        """Put `wrap(original)` in the place of `module.attribute`, whose parameters must include `needs`.

        A dotted attribute names a class's. One that is not there is passed over when `optional`, and made of
        `wrap(None)` when `create`.

        Raises:
            CaptureError: this JAX has no such place, or it takes other parameters.
        """
        try:
            owner, name, original = _find(module, attribute, create=create)
        except CaptureError:
            if optional:
                return
            raise
        missing = [need for need in needs if need not in _parameters(original)]
        if missing:
            raise _not_there(f"{module}.{attribute} without {', '.join(missing)}")
        replacement = wrap(original)
        if replacement is original:
            return
        if callable(original):
            replacement = _named_like(original, replacement)
        self._replaced.append((owner, name, original))
        setattr(owner, name, replacement)

    def restore(self) -> None:
        """Put every original back, the last replaced first."""
        while self._replaced:
            owner, name, original = self._replaced.pop()
            if original is None:
                delattr(owner, name)
            else:
                setattr(owner, name, original)


def _find(module: str, attribute: str, *, create: bool) -> tuple[Any, str, Any]:
    """The owner of an attribute, its name there, and what it is now; None where it is to be created."""
    try:
        owner: Any = importlib.import_module(module)
        *path, name = attribute.split(".")
        for step in path:
            owner = getattr(owner, step)
        if create and name not in vars(owner):
            return owner, name, None
        return owner, name, inspect.getattr_static(owner, name) if path else getattr(owner, name)
    except (ImportError, AttributeError):
        raise _not_there(f"{module}.{attribute}") from None


def _parameters(function: Any) -> list[str]:
    try:
        return list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return []


def _named_like(original: Any, replacement: Any) -> Any:
    try:
        return functools.update_wrapper(replacement, original)
    except (AttributeError, TypeError):
        return replacement


def _not_there(what: str) -> CaptureError:
    import jax

    return CaptureError(
        f"expected to find {what} in jax {jax.__version__}, where a capture hears of compiles",
        place=str(getattr(jax, "__file__", "jax")),
        remedy="Upgrade hlotrace, or capture with jax 0.10 or 0.12 (--python EXE picks another environment).",
    )


def on_jit(seams: Seams, heard: Callable[[Any, str], None]) -> None:
    """`heard(jit_info, filename)` when a function is wrapped; the file is that of the code that asked for it."""

    def wrap(original: Any) -> Any:
        def parse_jit_arguments(*args: Any, **kwargs: Any) -> Any:
            info = original(*args, **kwargs)
            frame = sys._getframe(1)
            while frame.f_back is not None and frame.f_globals.get("__name__") in _JIT_MODULES:
                frame = frame.f_back
            heard(info, frame.f_code.co_filename)
            return info

        return parse_jit_arguments

    seams.replace("jax._src.pjit", "_parse_jit_arguments", wrap)


def on_traced(seams: Seams, heard: Callable[[Any, Any, tuple[Any, ...], dict[str, Any], Any, int], None]) -> None:
    """`heard(function, jit_info, args, kwargs, jit_params, nanoseconds)` after a function's arguments were resolved."""

    def wrap(original: Any) -> Any:
        def infer_params(fun: Any, info: Any, args: Any, kwargs: Any) -> Any:
            start = time.perf_counter_ns()
            result = original(fun, info, args, kwargs)
            heard(fun, info, args, kwargs, result[0], time.perf_counter_ns() - start)
            return result

        return infer_params

    seams.replace("jax._src.pjit", "_infer_params", wrap, "fun", "args", "kwargs")


def around_tracing(seams: Seams, trace: Callable[..., Any]) -> None:
    """`trace(original, function)` around the trace of a function that was not traced for such arguments before."""

    def wrap(original: Any) -> Any:
        def trace_for_jit(fun: Any, *args: Any, **kwargs: Any) -> Any:
            return trace(functools.partial(original, fun, *args, **kwargs), fun)

        return trace_for_jit

    seams.replace("jax._src.pjit", "_trace_for_jit", wrap, optional=True)


def around_lowering(seams: Seams, lower: Callable[..., Any]) -> None:
    """`lower(original, argument_types, **parameters)` in the place of a program's lowering; gives a MeshComputation."""

    def wrap(original: Any) -> Any:
        def resolve_and_lower(args: Any, **parameters: Any) -> Any:
            return lower(original, args, **parameters)

        return resolve_and_lower

    needs = ("args", "jaxpr", "in_shardings", "out_shardings", "donated_invars", "ctx_mesh", "name")
    seams.replace("jax._src.pjit", "_resolve_and_lower", wrap, *needs, "lowering_platforms", "compiler_options_kvs")


def around_compile(seams: Seams, compile_: Callable[..., Any]) -> None:
    """`compile_(original, computation, **options)` in the place of `MeshComputation.compile`."""

    def wrap(original: Any) -> Any:
        def compile(self: Any, compiler_options: Any = None, *, device_assignment: Any = None) -> Any:  # noqa: A001
            return compile_(original, self, compiler_options=compiler_options, device_assignment=device_assignment)

        return compile

    place = "jax._src.interpreters.pxla"
    seams.replace(place, "MeshComputation.compile", wrap, "compiler_options", "device_assignment")


def around_backend_compile(seams: Seams, compile_: Callable[..., Any]) -> None:
    """`compile_(original, backend, module, devices, options, callbacks, executable_devices)`: below JAX's caches."""

    def wrap(original: Any) -> Any:
        def compile_or_get_cached(
            backend: Any, computation: Any, devices: Any, options: Any, callbacks: Any, executable_devices: Any,
            *rest: Any, **more: Any,
        ) -> Any:  # fmt: skip
            arguments = (backend, computation, devices, options, callbacks, executable_devices)
            return compile_(functools.partial(original, *arguments, *rest, **more), *arguments)

        return compile_or_get_cached

    needs = ("backend", "computation", "devices", "compile_options", "host_callbacks", "executable_devices")
    seams.replace("jax._src.compiler", "compile_or_get_cached", wrap, *needs)


def around_device_assignment(seams: Seams, assign: Callable[[Any], Any]) -> None:
    """`assign((backend, devices, count))` gives the devices that a lowering is really for."""

    def wrap(original: Any) -> Any:
        def get_and_check_device_assignment(*args: Any, **kwargs: Any) -> Any:
            return assign(original(*args, **kwargs))

        return get_and_check_device_assignment

    seams.replace("jax._src.interpreters.pxla", "_get_and_check_device_assignment", wrap, "shardings")


def around_calls(seams: Seams, call: Callable[..., Any]) -> None:
    """`call(original, *args, **parameters)` around the compile and run of a called program, not of AOT users."""
    seams.replace(
        "jax._src.pjit",
        "_pjit_call_impl_python",
        lambda original: lambda *args, **parameters: call(original, *args, **parameters),
        "args",
    )


def on_pmap_devices(seams: Seams, heard: Callable[[Sequence[Any], int], None]) -> None:
    """`heard(devices, size)` when a pmap over `size` has found its devices, which may be too few; it may raise."""

    def wrap(original: Any) -> Any:
        def get_mesh_devices(devices: Any, backend: Any, local_axis_size: int, *args: Any, **kwargs: Any) -> Any:
            found = original(devices, backend, local_axis_size, *args, **kwargs)
            heard(found, local_axis_size)
            return found

        return get_mesh_devices

    place = "jax._src.pmap"
    seams.replace(place, "_get_mesh_devices", wrap, "devices", "backend", "local_axis_size", optional=True)


def on_topology(seams: Seams, heard: Callable[[str, Any], None]) -> None:
    """`heard(name, devices)` when a script describes a topology of its own."""

    def wrap(original: Any) -> Any:
        def get_topology_desc(*args: Any, **kwargs: Any) -> Any:
            description = original(*args, **kwargs)
            name = kwargs.get("topology_name") or next((arg for arg in args if isinstance(arg, str)), "")
            slices = kwargs.get("num_slices", 1)
            heard(f"{slices}x{name}" if slices > 1 else str(name), description.devices)
            return description

        return get_topology_desc

    seams.replace("jax.experimental.topologies", "get_topology_desc", wrap)


def stand_in_backend(seams: Seams, platform: str, count: int, wanted: Callable[[int | None], None]) -> None:
    """The platform's backend is a CPU client of its own, with `count` devices; the host's CPU stays what it is.

    `wanted` hears how many devices JAX's option asked for.
    """
    standing_in: list[str] = []

    def init(original: Any) -> Any:
        def init_backend(name: str) -> Any:
            if name != platform:
                return original(name)
            standing_in.append(name)
            try:
                return original("cpu")
            finally:
                standing_in.clear()

        return init_backend

    def make(original: Any) -> Any:
        def make_cpu_client(*args: Any, **kwargs: Any) -> Any:
            if not standing_in:
                return original(*args, **kwargs)
            wanted(kwargs.get("num_devices"))
            return original(*args, **{**kwargs, "num_devices": count})

        return make_cpu_client

    seams.replace("jax._src.xla_bridge", "_init_backend", init, "platform")
    seams.replace("jaxlib.xla_client", "make_cpu_client", make)


def forget_lowerings() -> None:
    """Empty the cache of lowered programs, whose keys do not hold the device."""
    import jax._src.pjit

    cached: Any = jax._src.pjit._pjit_lower
    cached.cache_clear()
