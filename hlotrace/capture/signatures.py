"""What a program was called with: its arguments, outputs, static values and mesh, as the manifest tells them."""

from __future__ import annotations

import functools
import inspect
import math
import re
from typing import TYPE_CHECKING, Any

from hlotrace.bundle import Argument

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_LONGEST_REPR = 500
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def arguments(
    avals: Sequence[Any], names: Sequence[str], shardings: Sequence[Any], donated: Sequence[bool]
) -> list[Argument]:
    """One `Argument` a leaf; leading leaves without a name are arrays that the function closes over."""
    unnamed = len(avals) - len(names)
    paths = [f"constant[{index}]" for index in range(unnamed)]
    paths += [name or f"argument[{index}]" for index, name in enumerate(names)]
    return [
        _leaf(path, aval, sharding, donated=bool(given))
        for path, aval, sharding, given in zip(paths, avals, shardings, donated, strict=True)
    ]


def outputs(avals: Sequence[Any], paths: Sequence[str], shardings: Sequence[Any]) -> list[Argument]:
    """One `Argument` a leaf of the result."""
    return [
        _leaf(path or f"result[{index}]", aval, sharding, donated=False)
        for index, (path, aval, sharding) in enumerate(zip(paths, avals, shardings, strict=True))
    ]


def _leaf(path: str, aval: Any, sharding: Any, *, donated: bool) -> Argument:
    aval = getattr(aval, "inner_aval", aval)
    return Argument(
        path=path,
        shape=[size if isinstance(size, int) else -1 for size in getattr(aval, "shape", ())],
        dtype=str(getattr(aval, "dtype", aval)),
        sharding=sharding_text(sharding),
        weak_type=bool(getattr(aval, "weak_type", False)),
        donated=donated,
    )


def sharding_text(sharding: Any) -> str | None:
    """`P('data', None)` with the memory kind where it is not the usual one; null on one device or when not known."""
    if sharding is None or not hasattr(sharding, "memory_kind"):
        return None
    kind = sharding.memory_kind
    memory = f" in {kind}" if kind in ("pinned_host", "unpinned_host") and kind != _default_memory(sharding) else ""
    if getattr(sharding, "num_devices", 1) == 1:
        return memory.removeprefix(" ") or None
    spec = getattr(sharding, "spec", None)
    if spec is None:
        return f"{getattr(sharding, '_hlo_sharding', sharding)}{memory}"
    return f"P({', '.join(map(repr, spec))}){memory}"


def _default_memory(sharding: Any) -> str | None:
    try:
        return str(next(iter(sharding.device_set)).default_memory().kind)
    except Exception:  # a device of a topology without hardware has no memory to ask
        return None


def static_values(fun: Any, info: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, str]:
    """Name and repr of every static value: static arguments, and what a partial application holds that is no array."""
    names = _positional_names(fun, len(args))
    found = {names[index]: args[index] for index in _static_positions(info.static_argnums, len(args))}
    found |= {name: kwargs[name] for name in info.static_argnames or () if name in kwargs}
    held = fun
    while isinstance(held, functools.partial):
        found |= {name: value for name, value in held.keywords.items() if not _is_array_like(value)}
        held = held.func
    return {name: _repr(value) for name, value in found.items()}


def _static_positions(argnums: Iterable[int] | None, count: int) -> list[int]:
    positions = [index + count if index < 0 else index for index in argnums or ()]
    return [index for index in positions if 0 <= index < count]


def _positional_names(fun: Any, count: int) -> list[str]:
    try:
        parameters = list(inspect.signature(fun).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    positional = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return [positional[i] if i < len(positional) else f"argument[{i}]" for i in range(count)]


def _is_array_like(value: Any) -> bool:
    return hasattr(value, "shape") and hasattr(value, "dtype")


def _repr(value: Any) -> str:
    try:
        text = repr(value)
    except Exception as error:  # a user's own repr may raise anything
        text = f"<{type(value).__name__}, whose repr raised {type(error).__name__}>"
    text = _ADDRESS.sub("", text)
    return text if len(text) <= _LONGEST_REPR else text[: _LONGEST_REPR - 1] + "…"


def first_mesh(candidates: Iterable[Any]) -> Any:
    """The first mesh among shardings and meshes, or None."""
    meshes = (getattr(candidate, "mesh", candidate) for candidate in candidates)
    return next((mesh for mesh in meshes if hasattr(mesh, "axis_names") and not getattr(mesh, "empty", True)), None)


def mesh_axes(mesh: Any) -> dict[str, int] | None:
    """Axis names and sizes."""
    return None if mesh is None else {str(axis): int(size) for axis, size in dict(mesh.shape).items()}


def named(sharding: Any, mesh: Any) -> Any:
    """A sharding by mesh axes where the compiler answered with one by device numbers."""
    if mesh is None or not hasattr(sharding, "_hlo_sharding") or sharding.num_devices != mesh.size:
        return sharding
    from jax._src import sharding_impls

    try:
        return sharding_impls._gspmd_to_named_sharding_via_mesh(sharding, mesh)
    except (AttributeError, ValueError, AssertionError, IndexError, NotImplementedError):
        return sharding  # no axes of this mesh make it


def memory_analysis(executable: Any) -> dict[str, int] | None:
    """The compiler's memory figures in bytes, field by field as it names them."""
    try:
        stats = executable.memory_analysis()
    except Exception:  # NotImplementedError, or whatever a plugin raises: it gave none
        return None
    if stats is None:
        return None
    figures = {name: getattr(stats, name) for name in dir(stats) if not name.startswith("_")}
    return {name: value for name, value in figures.items() if isinstance(value, int)} or None


def cost_analysis(executable: Any) -> dict[str, float] | None:
    """The compiler's cost figures, those that are finite numbers."""
    try:
        costs = executable.cost_analysis()
    except Exception:  # NotImplementedError, or whatever a plugin raises: it gave none
        return None
    if isinstance(costs, list | tuple):
        costs = costs[0] if costs else None
    if not costs:
        return None
    return {
        name: float(value) for name, value in costs.items() if isinstance(value, int | float) and math.isfinite(value)
    }
