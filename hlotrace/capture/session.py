"""What one capture has heard so far, and its `child.json`."""

from __future__ import annotations

import functools
import os
import platform
import sys
import threading
import time
from dataclasses import dataclass, field, replace
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from hlotrace import __version__, bundle
from hlotrace.capture.spec import CaptureSpec, ChildResult, Event, encode_program

if TYPE_CHECKING:
    from collections.abc import Callable

    from hlotrace.capture.listener import Listener
    from hlotrace.capture.provenance import Definition

_PACKAGES = (
    "jax", "jaxlib", "libtpu", "numpy", "flax", "optax", "equinox", "haiku", "orbax", "chex", "torch", "torchax",
    "qwix",
)  # fmt: skip
_DISTRIBUTIONS = {"haiku": "dm-haiku", "orbax": "orbax-checkpoint"}
_ENVIRONMENT = ("XLA_FLAGS", "LIBTPU_INIT_ARGS")


@dataclass
class Record:
    """A program in the making; `program` is its manifest entry once the compile has ended, either way."""

    module: str
    folder: Path
    program: bundle.Program | None = None
    calls: int = 0
    compiles: int = 0
    _encoded: tuple[int, str] | None = None

    def finished(self) -> bundle.Program | None:
        """The entry with the calls made so far."""
        return None if self.program is None else replace(self.program, calls=self.calls)

    def encoded(self) -> str | None:
        """The same as JSON, encoded anew only when the calls have changed."""
        program = self.finished()
        if program is not None and (self._encoded is None or self._encoded[0] != program.calls):
            self._encoded = (program.calls, encode_program(program))
        return self._encoded[1] if self._encoded else None


@dataclass
class _Tally:
    count: int = 0
    compile_ns: int = 0
    defined_at: str | None = None


@dataclass
class Session:
    """One capture in this process.

    Attributes:
        environment: the variables a compiler reads: as the process got them; from the first compile on, as the script
            had set them by then.
        listeners: told of the calls of captured programs.
        describe_backend: gives the default backend's name, device kind and device count.
    """

    spec: CaptureSpec
    environment: dict[str, str] = field(default_factory=dict)
    listeners: list[Listener] = field(default_factory=list)
    describe_backend: Callable[[], tuple[str, str, int] | None] = lambda: None
    finished: bool = False
    exit_code: int | None = None
    script_error: str | None = None
    error: str | None = None
    profile_steps: int | None = None
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.staging = Path(self.spec.staging).absolute()
        self._records: list[Record] = []
        self._modules: dict[str, int] = {}
        self._backend: tuple[str, str, int] | None = None
        self._others: dict[tuple[str, str, str | None], _Tally] = {}
        self._lock = threading.RLock()
        self._pid = os.getpid()
        self.compiled_at = 0.0
        self._flags_settled = False
        self._unwritten = False
        self._written_at = 0.0
        self._write_cost = 0.0

    @property
    def target_name(self) -> str:
        """The requested target, or empty for this machine's own backend."""
        return self.spec.target.target if self.spec.target else ""

    def start_program(self, name: str, target: str) -> Record:
        """A new record with a module name of its own and an empty dump folder."""
        safe = f"{_safe(name)}@{_safe(target)}"
        with self._lock:
            self._modules[safe] = count = self._modules.get(safe, 0) + 1
            module = safe if count == 1 else f"{safe}.{count}"
            record = Record(module, self.staging / bundle.PROGRAMS / module)
            self._records.append(record)
        record.folder.mkdir(parents=True, exist_ok=True)
        if self._unwritten:
            self.write(now=True)  # a compile may take minutes, and no signal reaches Python meanwhile
        return record

    def finish_program(self, record: Record, program: bundle.Program) -> None:
        """Keep what a compile gave, and write it down."""
        with self._lock:
            record.program = program
            self.compiled_at = time.monotonic()
            self._unwritten = True
        self.write()

    def count_other(self, name: str, kind: str, definition: Definition | None, compile_ns: int) -> None:
        """One more compile of an eager primitive or a library's helper."""
        place = definition.place if definition else None
        with self._lock:
            tally = self._others.setdefault((name, kind, place), _Tally(defined_at=place))
            tally.count += 1
            tally.compile_ns += compile_ns

    def compiling(self) -> None:
        """The compiler is about to run: from the first time on, its flags are settled."""
        if not self._flags_settled:
            self._flags_settled = True
            ours = {"JAX_PLATFORMS"} if self.spec.target else set()
            theirs = {name: value for name, value in compiler_environment().items() if name not in ours}
            kept = {name: value for name, value in self.environment.items() if name in ours}
            self.environment = dict(sorted((kept | theirs).items()))

    def note(self, text: str) -> None:
        """Keep a sentence for the manifest, once."""
        with self._lock:
            if text not in self.notes:
                self.notes.append(text)

    def say(self, event: Event) -> None:
        """One line of progress to the parent, which may be gone."""
        if self.spec.progress_fd is None or os.getpid() != self._pid:
            return
        try:
            os.write(self.spec.progress_fd, event.to_line())
        except OSError:
            return

    def result(self) -> ChildResult:
        """What `child.json` says now."""
        self._backend = backend = self.describe_backend() or self._backend
        with self._lock:
            programs = [program for record in self._records if (program := record.finished())]
            others = [
                bundle.OtherCompile(name, kind, tally.count, tally.compile_ns, tally.defined_at)
                for (name, kind, _), tally in self._others.items()
            ]
            notes = self.notes + _recompiled(self._records)
        return ChildResult(
            finished=self.finished,
            exit_code=self.exit_code,
            script_error=self.script_error,
            error=self.error,
            versions=versions(),
            environment=self.environment,
            default_backend=backend[0] if backend else None,
            device_kind=backend[1] if backend else None,
            device_count=backend[2] if backend else None,
            programs=programs,
            other_compiles=others,
            profile_steps=self.profile_steps,
            notes=notes,
        )

    def write(self, *, now: bool = False) -> None:
        """Replace `child.json`, unless writing it takes a large part of the time; a forked process writes nothing."""
        if os.getpid() != self._pid:
            return
        start = time.monotonic()
        if not now and start - self._written_at < 20 * self._write_cost:
            return
        with self._lock:
            self._unwritten = False
            texts = [text for record in self._records if (text := record.encoded())]
            self.result().write(self.staging, texts)
        self._written_at = time.monotonic()
        self._write_cost = self._written_at - start


def _safe(word: str) -> str:
    """The word as a part of a folder's name."""
    return "".join(letter if letter.isalnum() or letter in "._-" else "_" for letter in word)


def _recompiled(records: list[Record]) -> list[str]:
    return [
        f"{record.module} was compiled {record.compiles} times with the same signature and the same program"
        for record in records
        if record.compiles > 1
    ]


def versions() -> dict[str, str]:
    """Of hlotrace, Python, and the packages among those that matter here that the script imported."""
    found = {"hlotrace": __version__, "python": platform.python_version()}
    for name in _PACKAGES:
        if name in sys.modules or name == "libtpu":
            version = _version(_DISTRIBUTIONS.get(name, name))
            found |= {name: version} if version else {}
    return found


@functools.cache
def _version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def compiler_environment() -> dict[str, str]:
    """The variables that compilers read: XLA's, libtpu's and JAX's."""
    kept = {name: value for name, value in os.environ.items() if name in _ENVIRONMENT or name.startswith("JAX_")}
    return dict(sorted(kept.items()))
