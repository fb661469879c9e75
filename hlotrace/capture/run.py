"""A capture, seen from outside: checks what was asked, runs a child for each target, writes the bundle."""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass, field
from pathlib import Path

from hlotrace import bundle
from hlotrace.capture.destination import Destination, told_when_full
from hlotrace.capture.interpreter import Interpreter, find_interpreter
from hlotrace.capture.outcome import Round, drop_unfinished, make_manifest, nothing_compiled
from hlotrace.capture.process import run_child
from hlotrace.capture.progress import Progress
from hlotrace.capture.spec import CHILD_RESULT, CaptureSpec, ChildResult
from hlotrace.capture.targets import Choice, choose, for_devices
from hlotrace.errors import CaptureError

SUFFIX = ".hlotrace"


@dataclass(frozen=True)
class CaptureOptions:
    """What the user asks for.

    Attributes:
        script: the file to run; null when `entry` is given.
        arguments: the script's own arguments.
        entry: `module:function`, a function that returns `(fn, args)`.
        out: the bundle's place; null puts it into the current directory, named after the script.
        targets: target words; none captures this machine's own backend.
        steps: steps of the profiler's trace of a native capture; 0 makes none.
        passes: dump the module after every pass too.
        run: with targets, run the programs for real too, on fake CPU devices.
        python: another interpreter.
        force: replace a bundle that is there already.
        quiet: no progress.
        every_target: go on with the next target when the script fails under one.
        output_to_stderr: the script's standard output goes where its errors go, so that ours can be read by programs.
    """

    script: Path | None = None
    arguments: tuple[str, ...] = ()
    entry: str | None = None
    out: Path | None = None
    targets: tuple[str, ...] = ()
    steps: int = 3
    passes: bool = False
    run: bool = False
    python: str | None = None
    force: bool = False
    quiet: bool = False
    every_target: bool = False
    output_to_stderr: bool = False

    @property
    def name(self) -> str:
        """The script or entry as the user wrote it."""
        return str(self.script) if self.script is not None else str(self.entry)


@dataclass(frozen=True)
class Captured:
    """A finished capture: the bundle, the exit code that hlotrace ends with, and whether the user stopped it."""

    path: Path
    manifest: bundle.Manifest
    exit_code: int
    interrupted: bool


@dataclass
class _Capture:
    options: CaptureOptions
    interpreter: Interpreter
    progress: Progress
    destination: Destination
    rounds: list[Round] = field(default_factory=list)
    untold: list[str] = field(default_factory=list)
    """What went wrong in rounds without a program: said when there is a bundle after all, else the capture's error."""

    @property
    def programs(self) -> list[bundle.Program]:
        return [program for round_ in self.rounds for program in round_.result.programs]

    def tell(self) -> None:
        for line in self.untold:
            self.progress.say(line)
        self.untold.clear()


def run_capture(options: CaptureOptions) -> Captured:
    """Capture a script and leave a bundle.

    Raises:
        CaptureError: what was asked for cannot be, or nothing was compiled; there is no bundle then.
    """
    choices = [choose(word) for word in dict.fromkeys(options.targets)]
    _check(options)
    interpreter = find_interpreter(options.python)
    if choices:
        interpreter.require_libtpu()
    else:
        interpreter.require_jax()
    destination = Destination(options.out or _default_place(options), force=options.force)
    capture = _Capture(options, interpreter, Progress(None if options.quiet else sys.stderr), destination)
    targets: list[Choice | None] = [*_distinct(choices)]
    try:
        with told_when_full(destination.path.parent):
            for choice in targets or [None]:
                if not _go_on(capture, choice):
                    break
            return _finish(capture)
    finally:
        destination.discard()


def _check(options: CaptureOptions) -> None:
    if (options.script is None) == (options.entry is None):
        raise CaptureError("expected a script or --entry module:function, one of the two")
    if options.entry is not None:
        module, _, function = options.entry.rpartition(":")
        if not module or not function:
            raise CaptureError(
                "expected module:function or file.py:function",
                place=f"--entry {options.entry}",
                remedy="It names a function that returns (fn, args).",
            )
    if options.script is not None and not options.script.is_file():
        what = "this is a directory, not a Python file" if options.script.is_dir() else "no such file"
        raise CaptureError(what, place=str(options.script), remedy="Give the path of a Python file.")
    if options.steps < 0:
        raise CaptureError("expected a number of steps, 0 or more", place=f"--steps {options.steps}")
    if options.run and not options.targets:
        raise CaptureError("without --target the programs are run anyway", place="--run")


def _default_place(options: CaptureOptions) -> Path:
    stem = options.script.stem if options.script is not None else str(options.entry).replace(":", ".")
    return Path(stem + SUFFIX)


def _distinct(choices: list[Choice]) -> list[Choice]:
    """One of each topology: `v5e-16` and `v5e:4x4` are the same."""
    return list({choice.spec.target: choice for choice in choices}.values())


def _go_on(capture: _Capture, choice: Choice | None) -> bool:
    """Run the script for one target, again with more devices if it wants more; False ends the capture."""
    programs = capture.destination.staging / bundle.PROGRAMS
    before = set(programs.iterdir()) if programs.exists() else set()
    round_ = _run(capture, choice)
    wanted = round_.end.needs_devices
    if wanted and choice is not None and choice.grows and not round_.end.interrupted:
        for folder in set(programs.iterdir()) - before if programs.exists() else ():
            shutil.rmtree(folder)
        round_ = _run(capture, for_devices(choice, wanted))
    capture.rounds.append(round_)
    capture.untold += round_.complaints(capture.options.name)
    if capture.programs:
        capture.tell()
    fruitless = round_.result.script_error and not round_.result.programs and not round_.end.needs_devices
    return not round_.end.interrupted and (capture.options.every_target or not fruitless)


def _run(capture: _Capture, choice: Choice | None) -> Round:
    options, staging = capture.options, capture.destination.staging
    if choice is not None:
        capture.progress.say(choice.reason)
    spec = CaptureSpec(
        staging=str(staging),
        script=None if options.script is None else str(options.script),
        entry=options.entry,
        argv=list(options.arguments),
        target=choice.spec if choice is not None else None,
        run=options.run,
        steps=0 if choice is not None else options.steps,
        passes=options.passes,
    )
    grows = choice is not None and choice.grows
    end = run_child(
        capture.interpreter,
        spec,
        capture.progress,
        stop_when_it_needs_devices=grows,
        output_to_stderr=options.output_to_stderr,
    )
    result = ChildResult.read(staging) or ChildResult()
    (staging / CHILD_RESULT).unlink(missing_ok=True)
    return Round(choice, end, result)


def _finish(capture: _Capture) -> Captured:
    options, rounds, staging = capture.options, capture.rounds, capture.destination.staging
    if not capture.programs:
        raise nothing_compiled(options.name, rounds)
    drop_unfinished(staging, capture.programs)
    argv = [str(options.script)] if options.script is not None else []
    manifest = make_manifest([*argv, *options.arguments], options.entry, rounds)
    bundle.write_manifest(staging, manifest)
    interrupted = any(round_.end.interrupted for round_ in rounds)
    place = capture.destination.commit(manifest.status)
    if place != capture.destination.path:
        capture.progress.say(f"{capture.destination.path} is left as it is, since the new bundle is partial")
    return Captured(place, manifest, manifest.exit_code, interrupted)
