"""Tells the user's programs from eager primitives and library helpers, as functions are traced."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from hlotrace.capture import paths, provenance, signatures
from hlotrace.capture.paths import Names
from hlotrace.capture.tickets import Origin

if TYPE_CHECKING:
    from hlotrace.capture.provenance import Definition


class Origins:
    """The origin of every jaxpr that may reach the compiler."""

    def __init__(self) -> None:
        self._known: weakref.WeakKeyDictionary[Any, Origin] = weakref.WeakKeyDictionary()
        self._asked_for: dict[int, Any] = {}

    def jitted(self, info: Any, filename: str) -> None:
        """A function was wrapped by `jax.jit`; when the user did so, a library's function is a program too."""
        if not provenance.is_library(filename):
            self._asked_for[id(info)] = info  # held, so that no other object gets its id

    def traced(self, fun: Any, info: Any, args: Any, kwargs: Any, parameters: Any, nanoseconds: int) -> None:
        """A function's jaxpr is there: remember whose it is."""
        jaxpr = parameters.params["jaxpr"]
        if jaxpr in self._known:
            return
        eager = bool(getattr(fun, "_apply_primitive", False))
        definition = self._definition(fun, info, jaxpr, eager=eager)
        inner = provenance.unwrap(fun)
        origin = self._known[jaxpr] = Origin(
            kind="program" if definition else "eager" if eager else "helper",
            definition=definition,
            function=definition.function
            if definition
            else str(getattr(inner, "__qualname__", parameters.params["name"])),
            names=tuple(parameters.arg_names),
            trace_ns=nanoseconds,
        )
        if definition is not None:
            results = jaxpr.debug_info.safe_result_paths(len(jaxpr.out_avals))
            names = Names(origin.names, tuple(results), signatures.static_values(fun, info, args, kwargs))
            names = paths.as_written(names, fun, args, parameters.out_tree, definition.parameters)
            origin.names, origin.results, origin.static = names.arguments, names.results, names.static

    def _definition(self, fun: Any, info: Any, jaxpr: Any, *, eager: bool) -> Definition | None:
        if eager:
            return provenance.of_bodies(jaxpr) or provenance.of_kernel(jaxpr)
        found = provenance.of_function(fun) or provenance.of_traced(jaxpr) or provenance.of_bodies(jaxpr)
        if found is None and (id(info) in self._asked_for or provenance.of_kernel(jaxpr)):
            return provenance.of_any_function(fun)
        return found

    def of(self, jaxpr: Any, name: str) -> Origin:
        """Of a jaxpr that reaches the compiler; one that JAX derived (a gradient's) tells it by its debug info."""
        found = self._known.get(jaxpr)
        if found is None:
            source = str(jaxpr.debug_info.func_src_info or name)
            definition = provenance.of_source(source) or provenance.of_traced(jaxpr) or provenance.of_bodies(jaxpr)
            function = definition.function if definition else name
            names = tuple(jaxpr.debug_info.safe_arg_names(len(jaxpr.in_avals)))
            found = self._known[jaxpr] = Origin("program" if definition else "helper", definition, function, names)
        return found
