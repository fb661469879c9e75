"""Our reader of HLO text against XLA's own, on every text that XLA accepts.

Compared: the module's name, the computations, the entry, and of each computation its root and its instructions with
opcode, operands, result shape with layout, called computations and parameter number. XLA's side comes as a proto that
its parser made of the same text. Where the two cannot be the same, this is why, and what is done about it:

* XLA gives a missing layout its default (major to minor), and a scalar an empty one: ours gets the same here.
* `f(x#1)` makes XLA add a get-tuple-element, one an element; ours keeps the operand with its element. The added ones
  are put back into the operands.
* XLA's calls stand in an order of its own (a while's body before its condition): they are compared sorted.
* An async-update or async-done runs nothing itself. Whether XLA lists the computation there, too, depends on the form
  of the text and on XLA's age: not compared.
* Of a constant XLA drops the element bits `E(4)`; of send, recv and their done it drops tiles and memory spaces: their
  layouts are not compared.
* Older XLA leaves out the parameters of what `call-start` wraps when they are bound by updates only: computations
  that XLA adds are not compared with it.
"""

from __future__ import annotations

import json
import re
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from hlotrace.errors import ParseError
from hlotrace.hlo.shape_text import parse_shape
from hlotrace.parsers import hlo_text
from hlotrace.parsers._proto_shape import shape_text
from hlotrace.parsers._wire import Message

if TYPE_CHECKING:
    from hlotrace.hlo.module import HloModule
    from hlotrace.hlo.shape import Shape

jaxlib = pytest.importorskip("jaxlib")
DATA = Path(__file__).parent.parent.parent / "shared" / "data"
IS_OLD = tuple(map(int, jaxlib.__version__.split(".")[:2])) < (0, 12)
DERIVED = {"constant", "send", "recv", "send-done", "recv-done"}
FOLLOWERS = {"async-update", "async-done"}
SCHEDULED = "is_scheduled=true, "


CHILD = """
import struct, sys
import jaxlib._hlo as xla
while len(head := sys.stdin.buffer.read(8)) == 8:
    text = sys.stdin.buffer.read(struct.unpack("<Q", head)[0]).decode("utf-8", "replace")
    try:
        reply = b"P" + xla.hlo_module_from_text(text).as_serialized_hlo_module_proto()
    except Exception:
        reply = b"E"
    sys.stdout.buffer.write(struct.pack("<Q", len(reply)) + reply)
    sys.stdout.buffer.flush()
"""


class Oracle:
    """A child that parses texts with the installed jaxlib: some texts crash it, then another is started."""

    def __init__(self) -> None:
        self._child: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Oracle:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def parse(self, text: str) -> bytes | None:
        """The HloModuleProto that XLA makes of a text; None where it rejects it or crashes.

        XLA dies of some schedules that its own compilers print (a wrapped call printed before its parameter): there
        the same text is asked for as an unscheduled one, of which all that is compared here is the same.
        """
        reply = self._reply(text)
        if reply is None and SCHEDULED in text:
            reply = self._reply(text.replace(SCHEDULED, "", 1))
        return reply[1:] if reply and reply[:1] == b"P" else None

    def _reply(self, text: str) -> bytes | None:
        if self._child is None:
            self._child = subprocess.Popen(
                [sys.executable, "-c", CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
        data = text.encode()
        try:
            return self._ask(self._child, struct.pack("<Q", len(data)) + data)
        except (BrokenPipeError, EOFError):
            self._end()
            return None

    @staticmethod
    def _ask(child: subprocess.Popen[bytes], question: bytes) -> bytes:
        assert child.stdin
        assert child.stdout
        child.stdin.write(question)
        child.stdin.flush()
        head = child.stdout.read(8)
        if len(head) < 8:
            raise EOFError
        return child.stdout.read(struct.unpack("<Q", head)[0])

    def _end(self) -> None:
        if self._child is not None:
            self._child.kill()
            self._child.communicate()
            self._child = None


class Instruction(NamedTuple):
    opcode: str
    operands: tuple[str, ...]
    shape: object
    called: tuple[str, ...]
    parameter: int


class Computation(NamedTuple):
    root: str
    instructions: dict[str, Instruction]


class Module(NamedTuple):
    name: str
    entry: str
    computations: dict[str, Computation]


def canonical(shape: Shape, with_layout: bool) -> object:
    if shape.elements:
        return shape.dtype, *(canonical(element, with_layout) for element in shape.elements)
    if shape.dtype in ("token", "opaque", "tuple") or not with_layout:
        return shape.dtype, shape.dims, shape.dynamic
    layout = shape.layout
    order = tuple(reversed(range(len(shape.dims))))
    plain = (order, (), 0, 0, 1)
    details = (
        plain
        if layout is None
        else (*(layout.minor_to_major, layout.tiles, layout.element_bits, layout.memory_space, layout.tail_alignment),)
    )
    return shape.dtype, shape.dims, shape.dynamic, details


def ours(hlo: HloModule) -> Module:
    names = hlo.names.to_pylist()
    shapes = {flag: [canonical(shape, flag) for shape in hlo.shapes] for flag in (False, True)}

    def operand(edge: int) -> str:
        element = hlo.operand_element[edge]
        return names[hlo.operand[edge]] + (f"#{element}" if element >= 0 else "")

    def instruction(row: int) -> Instruction:
        opcode = hlo.opcodes[hlo.opcode[row]]
        called = hlo.called[hlo.called_start[row] : hlo.called_start[row + 1]]
        return Instruction(
            opcode,
            tuple(map(operand, range(hlo.operand_start[row], hlo.operand_start[row + 1]))),
            shapes[opcode not in DERIVED][hlo.shape[row]],
            () if opcode in FOLLOWERS else tuple(sorted(hlo.computation_names[number] for number in called)),
            int(hlo.parameter_number[row]),
        )

    def computation(number: int) -> Computation:
        rows = range(hlo.computation_start[number], hlo.computation_start[number + 1])
        return Computation(names[hlo.computation_root[number]], {names[row]: instruction(row) for row in rows})

    computations = {name: computation(number) for number, name in enumerate(hlo.computation_names)}
    return Module(hlo.name, hlo.computation_names[hlo.entry], computations)


def xlas(proto: bytes) -> Module:
    """XLA's module; the numbers are those of the fields in XLA's hlo.proto."""
    module = Message(proto, "proto")
    computation_names = {item.integer(5): item.text(1) for item in module.messages(3)}

    def computation(item: Message) -> Computation:
        names = {entry.integer(35): entry.text(1) for entry in item.messages(2)}

        def instruction(entry: Message) -> Instruction:
            opcode = entry.text(2)
            called = () if opcode in FOLLOWERS else tuple(sorted(computation_names[at] for at in entry.integers(38)))
            return Instruction(
                opcode,
                tuple(names[at] for at in entry.integers(36)),
                canonical(parse_shape(shape_text(entry.message(3))), opcode not in DERIVED),
                called,
                entry.integer(9) if opcode == "parameter" else -1,
            )

        return Computation(names[item.integer(6)], {entry.text(1): instruction(entry) for entry in item.messages(2)})

    computations = {item.text(1): computation(item) for item in module.messages(3)}
    return Module(module.text(1), computation_names[module.integer(6)], computations)


def put_elements_back(theirs: Computation, mine: Computation) -> Computation:
    """Their computation without the get-tuple-elements that XLA added for operands such as `x#1`."""
    added = {}
    for name, instruction in theirs.instructions.items():
        element = re.fullmatch(r".*_(\d+)(\.\d+)?", name)
        if instruction.opcode == "get-tuple-element" and name not in mine.instructions and element:
            added[name] = f"{instruction.operands[0]}#{element[1]}"
    kept = {
        name: instruction._replace(operands=tuple(added.get(operand, operand) for operand in instruction.operands))
        for name, instruction in theirs.instructions.items()
        if name not in added
    }
    return Computation(theirs.root, kept)


def difference(text: str, proto: bytes) -> str | None:
    """What differs first between our reading of a text and XLA's; None where nothing does."""
    (hlo,) = hlo_text.read_modules(text)
    mine, theirs = ours(hlo), xlas(proto)
    if (mine.name, mine.entry) != (theirs.name, theirs.entry):
        return f"{mine.name} {mine.entry}, not {theirs.name} {theirs.entry}"
    if mine.computations.keys() != theirs.computations.keys():
        return f"computations {mine.computations.keys() ^ theirs.computations.keys()}"
    for name, computation in mine.computations.items():
        if IS_OLD and name.startswith("async_wrapped"):
            continue
        other = put_elements_back(theirs.computations[name], computation)
        if computation.root != other.root or computation.instructions.keys() != other.instructions.keys():
            return f"{name}: {computation.instructions.keys() ^ other.instructions.keys()} {computation.root}"
        for instruction, fields in computation.instructions.items():
            if fields != other.instructions[instruction]:
                return f"{instruction}: {fields}, not {other.instructions[instruction]}"
    return None


def strings() -> Iterator[tuple[str, str]]:
    with (DATA / "xla-test-strings.jsonl").open() as lines:
        for line in lines:
            entry = json.loads(line)
            yield f"{entry['file']}:{entry['line']}", entry["text"]


def files() -> Iterator[tuple[str, str]]:
    for path in sorted(DATA.rglob("*")):
        if path.is_file() and re.search(r"\.(hlo|txt|hlo\.\d+)$", path.name):
            yield str(path.relative_to(DATA)), path.read_text(errors="replace")


def disagreements(texts: Iterator[tuple[str, str]]) -> tuple[int, int, list[str]]:
    """How many texts XLA accepts, how many it does not, and where we differ or give an error without a place."""
    accepted, rejected, found = 0, 0, []
    with Oracle() as oracle:
        for place, text in texts:
            proto = oracle.parse(text)
            if proto is not None:
                accepted += 1
                differs = difference(text, proto)
                found += [f"{place}: {differs}"] if differs else []
                continue
            rejected += 1
            try:
                list(hlo_text.read_modules(text, place=place))
            except ParseError as error:
                has_place = re.fullmatch(re.escape(place) + r"(:\d+:\d+)?", str(error.place))
                found += [] if has_place else [f"{place}: no place in {error}"]
    return accepted, rejected, found


@pytest.mark.slow
@pytest.mark.skipif(not DATA.is_dir(), reason=f"no {DATA}: real files by others")
@pytest.mark.parametrize(("texts", "least"), [(strings, 3900), (files, 100)])
def test_every_text_that_xla_accepts_is_read_alike(
    texts: Callable[[], Iterator[tuple[str, str]]], least: int, capsys: pytest.CaptureFixture[str]
) -> None:
    accepted, rejected, found = disagreements(texts())
    with capsys.disabled():
        print(f"\n{texts.__name__}: {accepted - len(found)} of {accepted} texts agree, {rejected} XLA does not read")
    assert not found, "\n".join(found[:20])
    assert accepted >= least


COMPILE = """
import sys, jax, jax.numpy as jnp
from jax.experimental import topologies
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
import numpy as np
devices = topologies.get_topology_desc(platform="tpu", topology_name=sys.argv[1]).devices
mesh = Mesh(np.array(devices).reshape(-1, 2), ("data", "model"))
def step(w, x):
    def loss(w):
        y = jax.nn.softmax((x @ w).astype(jnp.float32))
        return jax.lax.scan(lambda c, r: (c + r.sum(), r), 0.0, y)[0]
    return w - 0.1 * jax.grad(loss)(w)
shape = lambda dims, spec: jax.ShapeDtypeStruct(dims, jnp.bfloat16, sharding=NamedSharding(mesh, spec))
lowered = jax.jit(step).lower(shape((512, 1024), P("data", "model")), shape((256, 512), P("data")))
print(lowered.as_text("hlo"))
print("=====")
print(lowered.compile().as_text())
"""


@pytest.mark.tpu_compiler
@pytest.mark.parametrize("target", ["v2:2x2", "v3:2x2", "v4:2x2x1", "v5e:2x2", "v5p:2x2x1", "v6e:2x2", "tpu7x:2x2x1"])
def test_fresh_programs_for_every_generation_are_read_alike(target: str, tpu_compiler: Callable[..., str]) -> None:
    before, after = tpu_compiler(COMPILE, target).split("\n=====\n")
    accepted, _, found = disagreements(iter([("before", before), ("after", after)]))
    assert accepted == 2
    assert not found, "\n".join(found)
