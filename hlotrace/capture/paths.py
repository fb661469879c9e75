"""Argument and result paths as the user knows them, where a library flattens its own before it calls `jax.jit`.

`nnx.jit` passes the leaves of a module as `model.states[0][12]`, which is `model.layers[0].wq.kernel`; `filter_jit` of
Equinox passes `dynamic_nodonate['first'][3]`, which is the fourth leaf of the function's first argument. What the
libraries are called with holds enough to tell. A form that is not known keeps JAX's own names.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from hlotrace.capture.provenance import of_pmap

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_STATES = re.compile(r"(?P<node>.*)\.states\[(?P<state>\d+)\]\[(?P<leaf>\d+)\](?P<rest>.*)")
_EQUINOX = re.compile(r"dynamic_(?:no)?donate\['(?P<part>first|rest|fun)'\]\[(?P<leaf>\d+)\](?P<rest>.*)")


@dataclass
class Names:
    """Names of the leaves of a program's arguments and results, and its static values."""

    arguments: tuple[str, ...]
    results: tuple[str, ...]
    static: dict[str, str]


def as_written(names: Names, fun: Any, args: Sequence[Any], out_tree: Any, parameters: Sequence[str]) -> Names:
    """The names in terms of the user's function, whose parameters are named `parameters`."""
    module = getattr(type(fun), "__module__", "") if not hasattr(fun, "__code__") else fun.__module__
    if module == "equinox._jit" and len(args) == 3 and isinstance(args[2], tuple):
        return _of_equinox(names, args[2], list(parameters))
    if str(module).startswith("flax.nnx"):
        return _of_nnx(names, args, out_tree, list(parameters))
    if (mapped := of_pmap(fun)) is not None:
        return replace(names, arguments=_of_tree(mapped[1], list(parameters)))
    return names


# -- pmap


def _of_tree(tree: Any, parameters: list[str]) -> tuple[str, ...]:
    """Of the leaves of `(args, kwargs)`."""
    import jax
    from jax.tree_util import keystr, tree_flatten_with_path

    names = []
    for path, _ in tree_flatten_with_path(jax.tree.unflatten(tree, range(tree.num_leaves)))[0]:
        given, step = path[0].idx, path[1]
        root = str(step.key) if given else _positional(parameters, step.idx + 1)[-1]
        names.append(root + keystr(path[2:]))
    return tuple(names)


# -- flax nnx


def _of_nnx(names: Names, args: Sequence[Any], out_tree: Any, parameters: list[str]) -> Names:
    import jax

    roots = dict(zip(_positional(parameters, len(args)), args, strict=True))
    results = jax.tree.unflatten(out_tree, range(out_tree.num_leaves))
    arguments = _with_state_paths(names.arguments, roots)
    given_back = _with_state_paths(names.results, {"result": results})
    return Names(arguments, tuple(_nnx_result(name, list(roots)) for name in given_back), names.static)


def _nnx_result(name: str, roots: list[str]) -> str:
    """`nnx.jit` returns the arguments that the function may have changed, then the result."""
    match = re.match(r"result\[0\]\[(\d+)\]", name)
    if match and int(match[1]) < len(roots):
        return roots[int(match[1])] + name[match.end() :]
    return "result" + name[len("result[2]") :] if name.startswith("result[2]") else name


def _with_state_paths(names: Iterable[str], roots: dict[str, Any]) -> tuple[str, ...]:
    nodes = dict(_nodes(roots))
    return tuple(_with_state_path(name, nodes) for name in names)


def _nodes(roots: dict[str, Any]) -> Iterable[tuple[str, Any]]:
    from jax.tree_util import keystr, tree_flatten_with_path

    for root, tree in roots.items():
        for path, leaf in tree_flatten_with_path(tree, is_leaf=_is_node)[0]:
            if _is_node(leaf):
                yield root + keystr(path), leaf


def _is_node(value: Any) -> bool:
    return isinstance(getattr(value, "states", None), tuple) and hasattr(value, "_graphdef")


def _with_state_path(name: str, nodes: dict[str, Any]) -> str:
    match = _STATES.fullmatch(name)
    if match is None or match["node"] not in nodes:
        return name
    node, leaf = nodes[match["node"]], int(match["leaf"])
    state = node.states[int(match["state"])]
    paths = getattr(state, "paths", None) or (_graph_paths(node._graphdef) if len(node.states) == 1 else [])
    if len(paths) != len(state):
        return name
    return match["node"] + "".join(map(_step, paths[leaf])) + match["rest"]


def _graph_paths(graph: Any) -> list[tuple[Any, ...]]:
    """Of a graph's leaves, in their order: it lists its nodes, and all their attributes, depth first."""
    nodes, attributes = iter(getattr(graph, "nodes", ())), iter(getattr(graph, "attributes", ()))
    found: list[tuple[Any, ...]] = []

    def visit(path: tuple[Any, ...]) -> None:
        node = next(nodes)
        kind = type(node).__name__
        if kind == "NodeDef":
            for _ in range(node.num_attributes):
                key, attribute = next(attributes)
                if type(attribute).__name__ == "NodeAttr":
                    visit((*path, key))
                elif type(attribute).__name__ == "LeafAttr":
                    found.append((*path, key))
        elif kind == "ArrayRefDef" or (kind == "VariableDef" and type(node.array_refdef).__name__ != "NodeRef"):
            found.append(path)

    try:
        visit(())
    except (StopIteration, AttributeError):
        return []
    return found


def _step(part: Any) -> str:
    return f".{part}" if isinstance(part, str) and part.isidentifier() else f"[{part!r}]"


# -- equinox


def _of_equinox(names: Names, static: tuple[Any, ...], parameters: list[str]) -> Names:
    """`static` is that of `filter_jit`: the function, its first argument, the others, each as (leaves, tree)."""
    trees = dict(zip(("fun", "first", "rest"), static, strict=False))
    if not all(isinstance(pair, tuple) and len(pair) == 2 for pair in trees.values()):
        return names
    is_object = any("['fun']" in name for name in names.arguments)
    own = parameters[0] if is_object and parameters else "fun"
    given = parameters[1:] if is_object else parameters
    paths = {part: _leaf_paths(part, tree, own, given) for part, (_, tree) in trees.items()}
    values = {
        path: repr(leaf)
        for part, (leaves, _) in trees.items()
        if part != "fun"
        for path, leaf in zip(paths[part], leaves, strict=False)
        if leaf is not None and not callable(leaf)
    }
    results = tuple(_equinox_result(name) for name in names.results)
    return Names(tuple(_equinox_argument(name, paths) for name in names.arguments), results, values)


def _leaf_paths(part: str, tree: Any, own: str, given: list[str]) -> list[str]:
    import jax
    from jax.tree_util import keystr, tree_flatten_with_path

    leaves = tree_flatten_with_path(jax.tree.unflatten(tree, range(tree.num_leaves)))[0]
    if part == "rest":
        return [_rest_path(path, given) for path, _ in leaves]
    root = own if part == "fun" else (given[0] if given else "argument[0]")
    return [root + keystr(path) for path, _ in leaves]


def _rest_path(path: Any, given: list[str]) -> str:
    """Of a leaf of `(positional arguments after the first, keyword arguments)`."""
    from jax.tree_util import keystr

    if len(path) < 2:
        return keystr(path)
    if getattr(path[0], "idx", None) == 0:
        index = int(path[1].idx) + 1
        return (given[index] if index < len(given) else f"argument[{index}]") + keystr(path[2:])
    return f"{path[1].key}{keystr(path[2:])}"


def _equinox_argument(name: str, paths: dict[str, list[str]]) -> str:
    match = _EQUINOX.fullmatch(name)
    if match is None or int(match["leaf"]) >= len(paths.get(match["part"], ())):
        return name
    return paths[match["part"]][int(match["leaf"])] + match["rest"]


def _equinox_result(name: str) -> str:
    """`filter_jit` returns a marker, the arrays of the result, and the rest of it."""
    if name.startswith("result[1]"):
        return "result" + name[len("result[1]") :]
    return "marker" if name == "result[0]" else name


def _positional(parameters: list[str], count: int) -> list[str]:
    return [parameters[i] if i < len(parameters) else f"argument[{i}]" for i in range(count)]
