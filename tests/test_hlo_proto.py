"""HLO protos: the same columns as the text of the same module, and damage is an error of ours."""

from __future__ import annotations

import base64
import dataclasses
import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

from hlotrace.errors import HlotraceError, ParseError
from hlotrace.parsers.buffer_assignment import read_buffer_assignment
from hlotrace.parsers.hlo_proto import read_module
from hlotrace.parsers.hlo_text import read_modules

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hlotrace.hlo.module import HloModule

HERE = Path(__file__).parent
SHARED = HERE.parent.parent / "shared" / "data"
PAIRS = sorted((HERE / "data").glob("*/*.hlo.pb"))

TEXT_ONLY = {"line", "computation_line", "problems"}
NOT_IN_PROTO = {
    "alias_passthrough_params",
    "allow_spmd_sharding_propagation_to_output",
    "allow_spmd_sharding_propagation_to_parameters",
}
NOT_IN_COLUMNS = {"debug_attributes", "num_partitions", "origin_recovery_table", "replica_count"}
"""What the texts of XLA's tests say in their header: tables that we do not read, and counts that a proto has of its
devices, which a test does not assign."""

COMPILE = """
import sys, jax, jax.numpy as jnp
from pathlib import Path
def layer(x, w):
    h = jax.nn.softmax((x @ w).astype(jnp.float32), -1).astype(x.dtype)
    return x + h @ w.T, h.max()
def f(ws, x, flag):
    x, tops = jax.lax.scan(layer, x, ws)
    x = jax.lax.cond(flag, lambda y: y * 2, lambda y: jnp.sort(y, -1), x)
    return jax.lax.dynamic_update_slice(x, x[:2], (1, 0)), tops, jnp.pad(x, 1).argmax(-1)
target, out = sys.argv[1:]
if target == "cpu":
    device = jax.devices()[0]
else:
    from jax.experimental import topologies
    device = topologies.get_topology_desc(platform="tpu", topology_name=target).devices[0]
sharding = jax.sharding.SingleDeviceSharding(device)
S = lambda shape, dtype: jax.ShapeDtypeStruct(shape, dtype, sharding=sharding)
args = (S((3, 128, 128), jnp.bfloat16), S((16, 128), jnp.bfloat16), S((), bool))
options = {"xla_dump_to": out, "xla_dump_hlo_as_text": True, "xla_dump_hlo_as_proto": True}
jax.jit(f, donate_argnums=1).lower(*args).compile(compiler_options=options)
"""


def differences(text: HloModule, proto: HloModule) -> list[str]:
    """The names of the fields in which two modules differ, of those that both readers can fill."""
    found = []
    for field in dataclasses.fields(text):
        one, other = getattr(text, field.name), getattr(proto, field.name)
        if field.name in TEXT_ONLY:
            continue
        if field.name == "attributes":
            same = {key: value for key, value in one.items() if key not in NOT_IN_PROTO} == other
        elif field.name == "frames" and one is not None and other is not None:
            same = all(
                np.array_equal(getattr(one, part.name), getattr(other, part.name)) for part in dataclasses.fields(one)
            )
        elif isinstance(one, np.ndarray):
            same = np.array_equal(one, other)
        elif isinstance(one, pa.Array):
            same = one.equals(other)
        else:
            same = one == other
        if not same:
            found.append(field.name)
    return found


def assert_same(proto_path: Path) -> None:
    text_path = proto_path.with_name(proto_path.name.removesuffix(".hlo.pb") + ".txt")
    (text,) = read_modules(text_path.read_text(), place=text_path.name)
    proto, _ = read_module(proto_path.read_bytes(), place=proto_path.name)
    assert differences(text, proto) == []


@pytest.mark.parametrize("path", PAIRS, ids=lambda path: path.parent.name)
def test_a_proto_gives_the_columns_of_its_text(path: Path) -> None:
    assert_same(path)


@pytest.mark.parametrize("path", PAIRS, ids=lambda path: path.parent.name)
def test_a_protos_buffer_assignment_is_the_one_of_the_side_file(path: Path) -> None:
    side = path.with_name(path.name.removesuffix(".hlo.pb") + "-buffer-assignment.txt")
    text = read_buffer_assignment(side.read_text())
    _, proto = read_module(path.read_bytes(), place=path.name)
    assert proto is not None
    for field in dataclasses.fields(text):
        one, other = getattr(text, field.name), getattr(proto, field.name)
        if isinstance(one, np.ndarray):
            assert np.array_equal(one, other), field.name
        elif isinstance(one, pa.Array):
            assert one.to_pylist() == other.to_pylist(), field.name
        else:
            assert one == other, field.name


def fresh_pairs(target: str, out: Path) -> list[Path]:
    pytest.importorskip("jax", reason="jax is not installed")
    variables = {"JAX_PLATFORMS": "cpu", "TPU_SKIP_MDS_QUERY": "1", "ALLOW_MULTIPLE_LIBTPU_LOAD": "1"}
    subprocess.run(
        [sys.executable, "-c", COMPILE, target, str(out)], check=True, capture_output=True, env=os.environ | variables
    )
    found = [path for path in sorted(out.glob("*.hlo.pb")) if "oom" not in path.name]
    assert found
    return found


def test_a_fresh_cpu_compile_gives_the_same_from_text_and_proto(tmp_path: Path) -> None:
    for path in fresh_pairs("cpu", tmp_path):
        assert_same(path)


@pytest.mark.tpu_compiler
@pytest.mark.parametrize("target", ["v5e:2x2", "tpu7x:2x2x1"])
def test_a_fresh_tpu_compile_gives_the_same_from_text_and_proto(target: str, tmp_path: Path) -> None:
    pytest.importorskip("libtpu", reason="libtpu is not installed")
    for path in fresh_pairs(target, tmp_path):
        assert_same(path)


def test_a_bare_module_is_read_as_the_one_in_an_hlo_proto() -> None:
    data = PAIRS[0].read_bytes()
    whole, assignment = read_module(data, place="whole")
    size, shift, at = 0, 0, 1
    while True:
        size |= (data[at] & 0x7F) << shift
        shift, at = shift + 7, at + 1
        if data[at - 1] < 0x80:
            break
    bare, none = read_module(data[at : at + size], place="bare")
    assert assignment is not None
    assert none is None
    assert differences(whole, bare) == []


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"", "an empty file"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "Git LFS pointer"),
        (b"\x0a\x01a", "another message"),
        (b"HloModule f\n\nENTRY main { }\n", "found"),
    ],
)
def test_what_is_no_hlo_proto_is_told(data: bytes, found: str) -> None:
    with pytest.raises(ParseError, match=found) as caught:
        read_module(data, place="f.hlo.pb")
    assert str(caught.value).startswith("f.hlo.pb")


def test_damaged_files_are_read_or_refused_with_our_own_error() -> None:
    data = PAIRS[0].read_bytes()
    chance = random.Random(7)
    refused = 0
    for _ in range(300):
        broken = bytearray(data)
        at = chance.randrange(len(broken))
        match chance.randrange(3):
            case 0:
                del broken[at:]
            case 1:
                broken[at] = chance.randrange(256)
            case _:
                del broken[at : at + chance.randrange(1, 40)]
        try:
            read_module(bytes(broken), place="f.hlo.pb")
        except HlotraceError:
            refused += 1
    assert refused > 100


@pytest.mark.parametrize("path", sorted(SHARED.rglob("*.pb")), ids=lambda path: path.name)
def test_protos_of_other_people_are_read(path: Path) -> None:
    if "xplane" in path.name:
        pytest.skip("a profile, not an HLO proto")
    hlo, _ = read_module(path.read_bytes(), place=path.name)
    assert hlo.instruction_count
    assert hlo.entry >= 0
    assert np.all(hlo.computation_root >= 0)


ONLY_IN_TEXT = (
    ", channel_id=0",  # a proto does not hold a number that is 0
    "has_dynamic_root=false",  # nor a flag that is false
    "metadata_payload=",  # bytes, which have no column
    "nan(0x",  # the payload of a NaN
    "slice_sizes={{4},",  # slices of another rank than the shape, in a test that only parses
    "[synthetic_call]",  # the older form of a newer `origin`
    "sparsity_config=",  # whose index the older XLA leaves out
    "-start(",  # XLA's own printer may hide the computation of an async start
)
"""What XLA prints of its own tests that a proto does not hold or that dumps do not do."""

STEP = 7


def xla_pairs(texts: Path) -> Iterator[tuple[int, str, bytes]]:
    """Number, XLA's text and XLA's proto of each STEP-th text that XLA accepts; a text that crashes XLA is left out."""
    script, first = HERE / "scripts" / "xla_text_and_proto.py", 0
    while True:
        done = subprocess.run([sys.executable, script, texts, str(first), str(STEP)], capture_output=True, text=True)
        for line in done.stdout.splitlines():
            found = json.loads(line)
            yield found["number"], found["text"], base64.b64decode(found["proto"])
        if done.returncode == 0:
            return
        first = int([line for line in done.stderr.splitlines() if line.isdigit()][-1]) + STEP


@pytest.mark.slow
def test_protos_of_xlas_own_tests_give_the_columns_of_xlas_text(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("jaxlib", reason="jaxlib is not installed")
    texts = SHARED / "xla-test-strings.jsonl"
    if not texts.is_file():
        pytest.skip("there is no ../shared/data/xla-test-strings.jsonl beside the checkout")
    # What it prints here is no dump, in which the newer XLA writes elements of tuples in place.
    monkeypatch.setattr("hlotrace.parsers._proto_rows.is_newer", lambda *_: False)
    compared, wrong = 0, []
    for number, text, proto in xla_pairs(texts):
        if any(part in text for part in ONLY_IN_TEXT):
            continue
        (one,) = read_modules(text, place=f"text {number}")
        other, _ = read_module(proto, place=f"proto {number}")
        compared += 1
        for key in NOT_IN_COLUMNS:
            one.attributes.pop(key, None)
        if found := differences(one, other):
            wrong.append((number, found))
    assert wrong == []
    assert compared > 400


def test_protos_of_other_people_are_there() -> None:
    if not SHARED.is_dir():
        pytest.skip("there is no ../shared/data beside the checkout")
    assert list(SHARED.rglob("*.hlo.pb"))
