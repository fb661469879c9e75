"""OpSharding, replica groups and meshes as the text that XLA prints for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hlotrace.parsers._proto_text import ints, joined, numbered

if TYPE_CHECKING:
    from hlotrace.parsers._wire import Message


_REPLICATED, _MAXIMAL, _TUPLE, _OTHER, _MANUAL, _UNKNOWN, _UNREDUCED = range(7)
_PLAIN = {_REPLICATED: "replicated", _MANUAL: "manual", _UNKNOWN: "unknown", _UNREDUCED: "unreduced"}
_REDUCTIONS = ("", "max", "min")


def sharding_text(sharding: Message) -> str:
    """The text of an OpSharding, braces included."""
    if 14 in sharding:
        return _named(sharding.message(14))
    kind = sharding.integer(1)
    if kind == _TUPLE:
        return "{" + numbered(map(sharding_text, sharding.messages(5))) + "}"
    if kind == _OTHER:
        body = _tiled(sharding)
    elif kind == _MAXIMAL:
        body = f"maximal device={(sharding.integers(4) or [0])[0]}"
    else:
        body = _PLAIN.get(kind, f"type{kind}")
    return "{" + body + _group(sharding) + _metadata(sharding, 7) + "}"


def _tiled(sharding: Message) -> str:
    text = f"devices=[{joined(sharding.integers(3))}]"
    if reshape := sharding.integers(9):
        text += _iota(reshape, sharding.integers(10))
    else:
        text += joined(sharding.integers(4))
    if sharding.integer(6):
        text += " last_tile_dim_replicate"
    if last := sharding.integers(8):
        text += f" last_tile_dims={{{', '.join(_PLAIN.get(kind, str(kind)) for kind in last)}}}"
    return text


def _group(sharding: Message) -> str:
    if not sharding.integer(11):
        return ""
    return f" shard_{'like' if sharding.integer(13) else 'as'} {sharding.integer(12)}"


def _metadata(sharding: Message, number: int) -> str:
    entries = [op_metadata_text(entry) for entry in sharding.messages(number)]
    if not entries:
        return ""
    if len(entries) == 1:
        return f" metadata={{{entries[0]}}}"
    return " metadata={" + ", ".join(f"{{{entry}}}" for entry in entries) + "}"


def op_metadata_text(metadata: Message) -> str:
    """The text of an OpMetadata, as it stands between the braces of `metadata={…}`."""
    parts = []
    for number, key in ((1, "op_type"), (2, "op_name"), (3, "source_file")):
        if text := metadata.text(number):
            parts.append(f'{key}="{escape(text)}"')
    for number, key in ((4, "source_line"), (17, "source_end_line"), (18, "source_column"), (19, "source_end_column")):
        if value := metadata.integer(number):
            parts.append(f"{key}={value}")
    kinds = metadata.integers(5) or metadata.message(10).integers(1)
    if kinds:
        parts.append(f"profile_type={{{joined(kinds)}}}")
    if name := metadata.text(12):
        parts.append(f'deduplicated_name="{escape(name)}"')
    if frame := metadata.integer(15):
        parts.append(f"stack_frame_id={frame}")
    if name := metadata.text(16):
        parts.append(f'scheduling_name="{escape(name)}"')
    return " ".join(parts)


def _named(sharding: Message) -> str:
    """A NamedShardingProto: the mesh, the axes of each dimension, and those replicated, unreduced or manual."""
    mesh = sharding.message(2)
    axes = _axes(mesh)
    entries = _metadata(sharding, 6)
    if not axes and (devices := mesh.integers(2)):
        return "{" + f"maximal device={devices[0]}" + entries + "}"
    parts = [_mesh(mesh)]
    if 3 in sharding:
        parts.append("[" + ", ".join(_dimension(part, axes) for part in sharding.messages(3)) + "]")
    for number, key in ((4, "replicated"), (5, "unreduced"), (7, "manual")):
        if number in sharding:
            parts.append(f"{key}={{{_axis_list(sharding, number, axes)}}}")
    if 8 in sharding:
        parts = [part for part in parts if not part.startswith("unreduced=")]
        parts.append(f"unreduced={_REDUCTIONS[sharding.integer(8) % 3]}")
    if len(parts) == 1:
        parts.append("replicated")
    return "{" + ", ".join(parts) + entries + "}"


def _dimension(part: Message, axes: list[tuple[str, int]]) -> str:
    names = [_axis(reference, axes) for reference in part.messages(1)]
    if not part.integer(2):
        names.append("?")
    return "{" + ", ".join(names) + "}"


def _axis_list(message: Message, number: int, axes: list[tuple[str, int]]) -> str:
    return ", ".join(_axis(reference, axes) for reference in message.messages(number))


def _axis(reference: Message, axes: list[tuple[str, int]]) -> str:
    index = reference.integer(1)
    name = axes[index][0] if 0 <= index < len(axes) else f"axis{index}"
    part = ""
    if 2 in reference:
        sub = reference.message(2)
        part = f":({sub.integer(1)}){sub.integer(2)}"
    return f"'{name}'{part}"


def _axes(mesh: Message) -> list[tuple[str, int]]:
    return [(axis.text(1), axis.integer(2)) for axis in mesh.messages(1)]


def _mesh(mesh: Message) -> str:
    text = "mesh[" + ",".join(f"'{name}'={size}" for name, size in _axes(mesh)) + "]"
    if 3 in mesh:
        transform = mesh.message(3)
        text += f", device_ids=({_iota(transform.integers(1), transform.integers(2), arrow='')})"
    elif devices := mesh.integers(2):
        text += f", device_ids=({joined(devices)})"
    return text


def replica_groups_text(instruction: Message) -> str:
    """The replica groups of a collective: a list, iota dimensions, or axes of a mesh."""
    if 93 in instruction:
        groups = instruction.message(93)
        mesh = groups.message(1)
        return f"{_mesh(mesh)} {{{','.join(_axis(reference, _axes(mesh)) for reference in groups.messages(2))}}}"
    if 92 in instruction:
        return _iota_groups(instruction.message(92))
    devices = instruction.message(87)
    if 2 in devices:
        return _iota_groups(devices.message(2))
    lists = list(devices.messages(1)) or list(instruction.messages(49))
    return "{" + ",".join(ints(group.integers(1)) for group in lists) + "}"


def _iota_groups(groups: Message) -> str:
    return f"[{groups.integer(1)},{groups.integer(2)}]" + _iota(groups.integers(3), groups.integers(4))


def _iota(reshape: list[int], permutation: list[int], arrow: str = "<=") -> str:
    text = f"{arrow}[{joined(reshape)}]"
    return text + f"T({joined(permutation)})" if permutation != sorted(permutation) else text


def escape(text: str) -> str:
    """A string as it stands between quotes in HLO text."""
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t").replace("\r", "\\r")


def is_braced(text: str) -> bool:
    """Whether it begins with a brace that closes at its end, as a dictionary does: such text stands without quotes."""
    if not text.startswith("{"):
        return False
    depth, quoted, at = 0, False, 0
    while at < len(text):
        char = text[at]
        if quoted:
            at += char == "\\"
            quoted = char != '"'
        elif char == '"':
            quoted = True
        else:
            depth += (char == "{") - (char == "}")
        at += 1
        if not depth:
            break
    return depth == 0 and at == len(text)
