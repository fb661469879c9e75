"""What the children of a capture left, told to people and written down as the manifest."""

from __future__ import annotations

import dataclasses
import datetime
import shutil
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import hlotrace
from hlotrace import bundle
from hlotrace.errors import CaptureError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hlotrace.capture.process import ChildEnd
    from hlotrace.capture.spec import ChildResult
    from hlotrace.capture.targets import Choice

_BY_SIGNAL = {
    signal.SIGKILL: "was killed (SIGKILL), which the kernel does when memory runs out",
    signal.SIGSEGV: "crashed (SIGSEGV): the compiler or an extension module is at fault, not the script's Python",
    signal.SIGABRT: "was aborted (SIGABRT) by the compiler or an extension module; its reason is in the log",
}


@dataclass(frozen=True)
class Round:
    """One child, from its start to what it left. `choice` is null for this machine's own backend."""

    choice: Choice | None
    end: ChildEnd
    result: ChildResult

    @property
    def is_whole(self) -> bool:
        """Whether the script ran to its end, so that nothing it would have compiled is missing."""
        return self.result.finished and not self.end.interrupted and not self.result.script_error

    @property
    def exit_code(self) -> int:
        """The script's own exit code; as shells count it when a signal ended it."""
        if self.end.interrupted:
            return 128 + signal.SIGINT
        if self.end.returncode < 0:
            return 128 - self.end.returncode
        return self.result.exit_code if self.result.exit_code is not None else self.end.returncode

    def complaints(self, script: str) -> list[str]:
        """One line for each thing that went wrong; the script's own traceback was shown by the child."""
        lines = []
        if self.end.needs_devices and self.choice is not None:
            spec = self.choice.spec
            bare = spec.topology_name.partition(":")[0]
            lines.append(
                f"{script} wants {self.end.needs_devices} devices, and {spec.target} has {spec.device_count}. "
                f"Ask for a larger slice, or for --target {bare}: the smallest that holds the program."
            )
        elif self.result.script_error:
            lines.append(f"{script} raised {self.result.script_error}")
        if self.result.error:
            lines.append(self.result.error)
        if self.end.returncode < 0 and not self.end.interrupted:
            number = signal.Signals(-self.end.returncode)
            how = _BY_SIGNAL.get(number, f"was ended by {number.name}")
            lines.append(f"{script} {how}{f', while {self.end.during}' if self.end.during else ''}")
        if self.end.returncode > 0 and not (self.result.finished or self.result.error or self.end.interrupted):
            lines.append(f"{script} ended with exit code {self.end.returncode} in its middle, by os._exit or the like")
        return lines


def exit_code(rounds: list[Round]) -> int:
    """The first of the script's exit codes that is not 0."""
    return next((round_.exit_code for round_ in rounds if round_.exit_code), 0)


def nothing_compiled(script: str, rounds: list[Round]) -> CaptureError:
    """The error of a capture without a program; it ends hlotrace with the script's own exit code, or else with 2."""
    others = _most(other for round_ in rounds for other in round_.result.other_compiles)
    last = rounds[-1]
    complaints = last.complaints(script)
    if last.end.interrupted:
        failure = CaptureError("interrupted before a program was compiled; nothing is kept", place=script)
    elif last.result.error:
        failure = CaptureError(last.result.error)
    elif complaints:
        failure = CaptureError(f"{complaints[-1].rstrip('.')}; nothing was compiled before that, and nothing is kept")
    else:
        remedy = "Call a function under jax.jit, or name one with --entry."
        failure = CaptureError(f"nothing was compiled{_but(others)}", place=script, remedy=remedy)
    failure.exit_code = exit_code(rounds) or CaptureError.exit_code
    return failure


def _but(others: list[bundle.OtherCompile]) -> str:
    """What was compiled, and is no program of the capture's."""
    on_host = [other.name for other in others if other.kind == "host"]
    if on_host:
        return f" for the target: the script puts {', '.join(on_host)} on the host CPU"
    eager = sum(other.count for other in others)
    return f" but {eager} eager operations and library helpers" if eager else ""


def drop_unfinished(staging: Path, programs: list[bundle.Program]) -> None:
    """Remove the dumps of compiles that were cut off."""
    known = {program.module for program in programs}
    for folder in (staging / bundle.PROGRAMS).iterdir():
        if folder.name not in known:
            shutil.rmtree(folder)


def make_manifest(argv: list[str], entry: str | None, rounds: list[Round]) -> bundle.Manifest:
    """The manifest of what all children left."""
    results = [round_.result for round_ in rounds]
    versions = {"hlotrace": hlotrace.__version__}
    environment: dict[str, str] = {}
    for result in results:
        versions |= result.versions
        environment |= result.environment
    complaints = [line for round_ in rounds for line in round_.complaints(entry or argv[0])]
    notes = [note for result in results for note in result.notes]
    return bundle.Manifest(
        created=datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
        status="complete" if all(round_.is_whole for round_ in rounds) else "partial",
        argv=argv,
        versions=versions,
        environment=environment,
        targets=[_target(round_, argv[0] if argv else str(entry)) for round_ in rounds],
        programs=[program for result in results for program in result.programs],
        other_compiles=_most(other for result in results for other in result.other_compiles),
        entry=entry,
        profile_steps=next((result.profile_steps for result in results if result.profile_steps is not None), None),
        exit_code=exit_code(rounds),
        notes=list(dict.fromkeys(complaints + notes)),
    )


def _most(compiles: Iterable[bundle.OtherCompile]) -> list[bundle.OtherCompile]:
    """One of each: the same script runs for every target, and what is eager compiles each time."""
    found: dict[tuple[str, str, str | None], bundle.OtherCompile] = {}
    for other in compiles:
        key = (other.name, other.kind, other.defined_at)
        if key not in found or other.count > found[key].count:
            found[key] = other
    return list(found.values())


def _target(round_: Round, script: str) -> bundle.Target:
    error = next(iter(round_.complaints(script)), None)
    if round_.choice is not None:
        return dataclasses.replace(round_.choice.as_bundle_target(), error=error)
    result = round_.result
    platform = result.default_backend or "unknown"
    return bundle.Target(
        requested="",
        target=platform,
        platform=platform,
        device_kind=result.device_kind,
        device_count=result.device_count or 0,
        reason="this machine's own backend",
        error=error,
    )
