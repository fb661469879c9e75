"""HloProto and HloModuleProto (`.hlo.pb`), read into the same columns as HLO text, without a protobuf runtime.

Field numbers are those of XLA's `hlo.proto` and `xla_data.proto`. What differs from the text of the same module: there
are no line numbers; the header's attributes are those that the proto has (a module's configuration, such as
`allow_spmd_sharding_propagation_to_output`, is not in it).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hlotrace.errors import ParseError
from hlotrace.parsers._proto_assignment import read_assignment
from hlotrace.parsers._proto_header import header_attributes, read_frames
from hlotrace.parsers._proto_rows import ModuleRows
from hlotrace.parsers._wire import Message
from hlotrace.parsers._wire_columns import scan_message

if TYPE_CHECKING:
    from hlotrace.hlo.assignment import BufferAssignment
    from hlotrace.hlo.module import HloModule

_LFS = b"version https://git-lfs"
_COMPUTATIONS, _STACK_FRAMES = 3, 17


def read_module(data: bytes, *, place: str) -> tuple[HloModule, BufferAssignment | None]:
    """The module of an HloProto or a bare HloModuleProto, and the buffer assignment where there is one.

    Args:
        data: the file.
        place: its name, for errors.

    Raises:
        ParseError: it is neither, is cut, or holds a reference to nothing.
    """
    module, proto = _module_of(data, place)
    rows = ModuleRows(module)
    hlo = rows.build(
        name=module.text(1),
        attributes=header_attributes(module),
        frames=read_frames(module.message(_STACK_FRAMES)) if _STACK_FRAMES in module else None,
    )
    if proto is None or 3 not in proto:
        return hlo, None
    return hlo, read_assignment(scan_message(proto).child(3), rows)


def _module_of(data: bytes, place: str) -> tuple[Message, Message | None]:
    """The HloModuleProto, and the HloProto around it where there is one.

    Field 1 of an HloProto is a module, of a module its name.
    """
    if not data or data.startswith(_LFS):
        found = "a Git LFS pointer: the file itself was not fetched" if data else "an empty file"
        raise ParseError(f"expected an HloProto, found {found}", place=place, remedy="Get the file itself.")
    outer = Message(data, place)
    try:
        inner = outer.message(1)
    except ParseError:
        inner = None
    if inner is not None and _is_module(inner):
        return inner, outer
    if _is_module(outer):
        return outer, None
    raise ParseError(
        "expected an HloProto or HloModuleProto, found another message",
        place=place,
        remedy="XLA writes them as *.hlo.pb with --xla_dump_hlo_as_proto.",
    )


def _is_module(message: Message) -> bool:
    """Whether its field 3 holds computations: messages with a name and instructions that have names and opcodes."""
    if 1 not in message:
        return False
    try:
        first = next(message.messages(_COMPUTATIONS), None)
        instruction = next(first.messages(2), None) if first else None
        return instruction is not None and bool(instruction.raw(1)) and bool(instruction.raw(2))
    except ParseError:
        return False
