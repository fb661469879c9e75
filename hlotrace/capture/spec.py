"""What a capture's parent process asks of its child, and what the child says on the way.

The parent writes a `CaptureSpec` as JSON and starts `PYTHON .../hlotrace/capture/_child.py SPEC.json`. It runs the
file by its path, so that an interpreter of another environment needs no hlotrace of its own; the child reads its
package from beside that file and leaves `sys.path` as the script expects it. All here is standard library.

The child writes into `staging`:

    programs/<module>/     the dump files of one compile
    logs/libtpu.log        what libtpu logs
    child.json             a `ChildResult`, replaced in whole after compiles, so an interrupted child leaves one too

and, to `progress_fd`, one JSON object a line: an `Event`.

One child serves one target. A script sees as many devices as its target has, in the order and of the kind that the
target has them, and that cannot be true of two targets at once; the parent starts a child for each and joins what they
left. Module names hold the target's, so they do not collide.
"""

from __future__ import annotations

import dataclasses
import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hlotrace import bundle

if TYPE_CHECKING:
    from collections.abc import Sequence

CHILD_RESULT = "child.json"


@dataclass(frozen=True)
class TargetSpec:
    """One target of a compile-only capture.

    Attributes:
        requested: the word that was asked for, such as `v5e-16`.
        target: what was chosen and how it is shown, such as `v5e:4x4` or `2xv6e:4x4`.
        topology_name: for `jax.experimental.topologies.get_topology_desc`, such as `v5e:4x4`.
        device_kind: JAX's name of the chip, such as `TPU v5 lite`; every executable is held to it.
        device_count: JAX devices of all slices together: so many fake CPU devices stand in for them.
        topology_options: further keyword arguments of `get_topology_desc` (`wrap`, `chips_per_host_bounds`,
            `chip_config_name`); JSON's lists stand for tuples.
    """

    requested: str
    target: str
    topology_name: str
    device_kind: str
    device_count: int
    platform: str = "tpu"
    num_slices: int = 1
    topology_options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class CaptureSpec:
    """One capture: what to run, for which targets, where to put it.

    Attributes:
        script: the file to run as `__main__`; null when `entry` is given.
        entry: `module:function`, a function that returns `(fn, args)`.
        argv: the arguments after the script's name.
        cwd: the directory that the script runs in.
        staging: the directory of the bundle in the making; it exists. Children of one capture may share it one after
            the other: each replaces only `child.json`, which the parent reads in between.
        target: null captures this machine's own backend.
        run: with a target, also run every program for real on the fake CPU devices.
        steps: how many steps of a native capture go into the profiler's trace; 0 makes no trace.
        passes: dump the module after every pass too.
        progress_fd: an inherited file descriptor for `Event` lines; null says nothing.
    """

    staging: str
    script: str | None = None
    entry: str | None = None
    argv: list[str] = field(default_factory=list)
    cwd: str = field(default_factory=os.getcwd)
    target: TargetSpec | None = None
    run: bool = False
    steps: int = 0
    passes: bool = False
    progress_fd: int | None = None

    def to_json(self) -> str:
        """The spec as one JSON object."""
        return json.dumps(dataclasses.asdict(self), indent=1)

    @classmethod
    def from_json(cls, text: str) -> CaptureSpec:
        """The spec that `to_json` wrote."""
        values = json.loads(text)
        values["target"] = TargetSpec(**values["target"]) if values.get("target") else None
        return cls(**values)


@dataclass(frozen=True)
class Event:
    """One line of progress.

    Attributes:
        stage: `topology`, `trace`, `lower`, `compile`, `run`, `profile`; or, without seconds, `failed` (a program that
            gave no executable), `note` (what a person should know now), `needs_devices` (the script wants more devices
            than the target has: how many is in `detail`, as a number) or `error`.
        function: the module name of the program it concerns, such as `jit_train_step`.
        target: as in `TargetSpec.target`, or the native platform.
        seconds: how long the finished stage took; null as a stage starts.
        detail: a sentence for people, such as the failure.
    """

    stage: str
    function: str = ""
    target: str = ""
    seconds: float | None = None
    detail: str = ""

    def to_line(self) -> bytes:
        """The event as one line of JSON."""
        return (json.dumps(dataclasses.asdict(self), ensure_ascii=False) + "\n").encode()

    @classmethod
    def from_line(cls, line: str | bytes) -> Event:
        """The event that `to_line` wrote."""
        return cls(**json.loads(line))


def encode_program(program: bundle.Program) -> str:
    """A program as one line of JSON."""
    return json.dumps(dataclasses.asdict(program), ensure_ascii=False)


@dataclass(frozen=True)
class ChildResult:
    """What a child has captured so far.

    Attributes:
        finished: the script ran to its end (or exit, or exception); otherwise the child was interrupted.
        script_error: the last line of the script's traceback, null when it raised nothing.
        error: a line of ours when the capture itself failed: a seam that is not there, no libtpu, another device kind.
        versions: python, jax, jaxlib, libtpu, flax, ... as imported in the child.
        environment: XLA_FLAGS, LIBTPU_INIT_ARGS, JAX_* as the compiler saw them, without what the capture added.
        default_backend, device_kind, device_count: of the backend that ran the script; null before JAX started one.
        profile_steps: steps in the profiler's trace, null without one.
    """

    finished: bool = False
    exit_code: int | None = None
    script_error: str | None = None
    error: str | None = None
    versions: dict[str, str] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    default_backend: str | None = None
    device_kind: str | None = None
    device_count: int | None = None
    programs: list[bundle.Program] = field(default_factory=list)
    other_compiles: list[bundle.OtherCompile] = field(default_factory=list)
    profile_steps: int | None = None
    notes: list[str] = field(default_factory=list)

    def write(self, staging: Path, encoded: Sequence[str] | None = None) -> None:
        """Replace `child.json` in one step; `encoded` is the programs' JSON, where it is at hand."""
        texts = [encode_program(program) for program in self.programs] if encoded is None else encoded
        rest = json.dumps(dataclasses.asdict(dataclasses.replace(self, programs=[])), ensure_ascii=False)
        lines = ",\n".join(texts)
        text = rest.replace('"programs": []', f'"programs": [\n{lines}\n]', 1)
        part = staging / (CHILD_RESULT + ".part")
        part.write_text(text + "\n", encoding="utf-8")
        part.replace(staging / CHILD_RESULT)

    @classmethod
    def read(cls, staging: Path) -> ChildResult | None:
        """What the child left, or None when it ended before it wrote anything."""
        path = staging / CHILD_RESULT
        if not path.exists():
            return None
        values: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        values["programs"] = [bundle.program_from_json(item) for item in values["programs"]]
        values["other_compiles"] = [bundle.OtherCompile(**item) for item in values["other_compiles"]]
        return cls(**values)
