"""The directory that one capture leaves: `manifest.json`, and where its files are.

    BUNDLE/
      manifest.json                     what was captured, with which versions, flags and figures
      programs/<module>/                a folder a (function, signature, target): XLA's dump of that compile alone
      profile/plugins/profile/<run>/    the profiler's log directory as XProf and TensorBoard read it
      logs/                             what libtpu and the compiler said on stderr

A manifest is plain JSON: these dataclasses field by field. Readers ignore keys they do not know, so that a newer
minor version can be opened; `format_version` rises when a key changes its meaning.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hlotrace.errors import ParseError

FORMAT_VERSION = 1
MANIFEST_NAME = "manifest.json"
PROGRAMS = "programs"
PROFILE = "profile"
LOGS = "logs"


@dataclass(frozen=True)
class Argument:
    """One leaf of a program's arguments.

    Attributes:
        path: its pytree path from the argument's name, such as `params['layers'][0]['wq']`.
        shape: global dimensions.
        sharding: as text, null when it is on one device.
    """

    path: str
    shape: list[int]
    dtype: str
    sharding: str | None = None
    weak_type: bool = False
    donated: bool = False


@dataclass(frozen=True)
class Failure:
    """Why a compile gave no executable.

    Attributes:
        kind: `out_of_memory`, `lowering` or `compile`.
        needed_bytes, available_bytes: as the compiler said them, null when it did not.
        memory_space: `hbm` or `vmem`, where the compiler named one.
    """

    kind: str
    message: str
    needed_bytes: int | None = None
    available_bytes: int | None = None
    memory_space: str | None = None


@dataclass(frozen=True)
class Program:
    """One compiled (function, signature, target).

    Attributes:
        module: unique in the bundle; also the folder's name under `programs/`.
        name: the HLO module name, such as `jit_train_step`.
        function: the qualified name of the function.
        defined_at: `file:line` of its definition.
        target: the topology (`v5e:2x2`) or this machine's platform (`cpu`).
        static_arguments: name and repr of each static value.
        mesh: axis names to sizes, null without a mesh.
        calls: how often the program called it.
        trace_ns, lower_ns, compile_ns: measured, null when not known.
        memory_analysis, cost_analysis: as the compiler gave them, null where it gave none.
    """

    module: str
    name: str
    function: str
    defined_at: str | None
    target: str
    platform: str
    device_kind: str | None
    device_count: int
    arguments: list[Argument] = field(default_factory=list)
    outputs: list[Argument] = field(default_factory=list)
    static_arguments: dict[str, str] = field(default_factory=dict)
    mesh: dict[str, int] | None = None
    calls: int = 0
    trace_ns: int | None = None
    lower_ns: int | None = None
    compile_ns: int | None = None
    memory_analysis: dict[str, int] | None = None
    cost_analysis: dict[str, float] | None = None
    failure: Failure | None = None


@dataclass(frozen=True)
class OtherCompile:
    """Compiles that are counted and listed, not treated as programs.

    Attributes:
        kind: `eager` (a primitive), `helper` (a library's), or `host`: put on the host CPU in a capture for a target.
    """

    name: str
    kind: str
    count: int
    compile_ns: int | None = None
    defined_at: str | None = None


@dataclass(frozen=True)
class Target:
    """What was compiled for: the word that was asked for and what was chosen for it, for which `reason`.

    Attributes:
        error: what went wrong under it, null when the script ran to its end; programs may be missing then.
    """

    requested: str
    target: str
    platform: str
    device_kind: str | None
    device_count: int
    reason: str = ""
    error: str | None = None


@dataclass(frozen=True)
class Manifest:
    """Everything a capture says of itself.

    Attributes:
        created: ISO 8601 with the zone.
        status: `complete`, or `partial` when it was interrupted.
        argv: the captured script and its arguments.
        versions: hlotrace, python, jax, jaxlib, libtpu, … ; a package that was not there is absent.
        environment: XLA_FLAGS, LIBTPU_INIT_ARGS and others as the compiler saw them.
        profile_steps: traced steps; null when there is no trace.
        exit_code: the captured program's own.
    """

    created: str
    status: str
    argv: list[str]
    versions: dict[str, str]
    environment: dict[str, str]
    targets: list[Target]
    programs: list[Program]
    other_compiles: list[OtherCompile] = field(default_factory=list)
    entry: str | None = None
    profile_steps: int | None = None
    exit_code: int = 0
    notes: list[str] = field(default_factory=list)
    format_version: int = FORMAT_VERSION


def write_manifest(directory: Path, manifest: Manifest) -> None:
    """Write `manifest.json` into a bundle."""
    text = json.dumps(dataclasses.asdict(manifest), indent=1, ensure_ascii=False)
    (directory / MANIFEST_NAME).write_text(text + "\n", encoding="utf-8")


def read_manifest(directory: Path) -> Manifest:
    """The manifest of the bundle in `directory`.

    Raises:
        ParseError: it is not JSON, lacks what it must have, or is of a newer format.
    """
    path = directory / MANIFEST_NAME
    return manifest_from_text(path.read_text(encoding="utf-8", errors="replace"), str(path))


def manifest_from_text(text: str, place: str) -> Manifest:
    """The manifest that a `manifest.json` holds; `place` names that file in errors.

    Raises:
        ParseError: it is not JSON, lacks what it must have, or is of a newer format.
    """
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        raise ParseError(
            f"expected JSON, found something else: {error.msg}",
            place=f"{place}:{error.lineno}:{error.colno}",
            remedy="Capture again, or open the bundle's programs/ folder, which needs no manifest.",
        ) from None
    version = data.get("format_version") if isinstance(data, dict) else None
    if not isinstance(version, int):
        raise ParseError(
            "expected a manifest of hlotrace, found JSON without a format_version",
            place=place,
            remedy="Capture again, or open the bundle's programs/ folder, which needs no manifest.",
        )
    if version > FORMAT_VERSION:
        raise ParseError(
            f"expected a manifest of format {FORMAT_VERSION} or older, found {version!r}",
            place=place,
            remedy="Install a newer hlotrace to read it.",
        )
    try:
        return _manifest(data)
    except (TypeError, AttributeError) as error:
        raise ParseError(f"the manifest lacks what it must have: {error}", place=place) from None


def _manifest(data: dict[str, Any]) -> Manifest:
    nested = {"targets": Target, "other_compiles": OtherCompile}
    values = _known(Manifest, data)
    for key, kind in nested.items():
        values[key] = [kind(**_known(kind, item)) for item in values.get(key, [])]
    values["programs"] = [program_from_json(item) for item in values.get("programs", [])]
    return Manifest(**values)


def program_from_json(data: dict[str, Any]) -> Program:
    """The program whose fields `dataclasses.asdict` gave."""
    values = _known(Program, data)
    for key in ("arguments", "outputs"):
        values[key] = [Argument(**_known(Argument, item)) for item in values.get(key, [])]
    if values.get("failure"):
        values["failure"] = Failure(**_known(Failure, values["failure"]))
    return Program(**values)


def _known(kind: type, data: dict[str, Any]) -> dict[str, Any]:
    names = {item.name for item in dataclasses.fields(kind)}
    return {key: value for key, value in data.items() if key in names}
