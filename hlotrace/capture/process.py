"""Starts a capture's child, listens to it, and stops it when the user asks."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from hlotrace.capture.spec import CaptureSpec, Event
from hlotrace.errors import CaptureError

if TYPE_CHECKING:
    from types import FrameType

    from hlotrace.capture.interpreter import Interpreter
    from hlotrace.capture.progress import Progress

_CHILD = Path(__file__).with_name("_child.py")
_SPEC = "spec.json"
_TICK = 0.1
_STDERR = 2


@dataclass(frozen=True)
class ChildEnd:
    """How a child ended.

    Attributes:
        returncode: negative for the signal that ended it.
        interrupted: the user asked for it.
        needs_devices: how many devices the script wanted beyond those of its target; None when they sufficed.
        during: what it was doing last, such as `compiling jit_step for v5e:2x2`; empty between stages.
    """

    returncode: int
    interrupted: bool
    needs_devices: int | None
    during: str


def run_child(
    interpreter: Interpreter,
    spec: CaptureSpec,
    progress: Progress,
    *,
    stop_when_it_needs_devices: bool,
    output_to_stderr: bool = False,
) -> ChildEnd:
    """Run one child to its end. Its stdin, stdout and stderr are ours.

    The first interrupt is passed on to the child, which keeps what it has finished; the second kills it.

    Args:
        interpreter: what runs it.
        spec: what it does; the pipe for its events is made here.
        progress: what its events are told to.
        stop_when_it_needs_devices: end it as soon as it wants more devices, since it will be started with more.
        output_to_stderr: what it writes to stdout goes to stderr too.

    Raises:
        CaptureError: the bundle cannot be written; the child is ended.
    """
    read_end, write_end = os.pipe()
    path = Path(spec.staging) / _SPEC
    path.write_text(replace(spec, progress_fd=write_end).to_json(), encoding="utf-8")
    # On a terminal the child stays in our process group: in another one it could not read from the terminal.
    own_group = not _is_terminal(sys.stdin)
    try:
        child = subprocess.Popen(
            [interpreter.executable, str(_CHILD), str(path)],
            stdout=_STDERR if output_to_stderr else None,
            pass_fds=(write_end,),
            cwd=spec.cwd,
            process_group=0 if own_group else None,
        )
    finally:
        os.close(write_end)
    try:
        with _interrupts(child, own_group, progress) as interrupts:
            return _attend(child, read_end, progress, interrupts, stop_when_it_needs_devices)
    finally:
        os.close(read_end)
        path.unlink(missing_ok=True)
        if child.poll() is None:
            _signal(child, signal.SIGKILL, own_group)
            child.wait()


def _attend(
    child: subprocess.Popen[bytes],
    read_end: int,
    progress: Progress,
    interrupts: list[int],
    stop_when_it_needs_devices: bool,
) -> ChildEnd:
    needs_devices: int | None = None
    for event in _events(child, read_end, progress):
        if event.stage == "needs_devices":
            needs_devices = max(needs_devices or 0, int(event.detail))
            if stop_when_it_needs_devices:
                child.kill()
        elif event.stage == "lost":
            raise CaptureError(event.detail)
        else:
            progress.event(event)
    returncode = child.wait()
    return ChildEnd(returncode, bool(interrupts), needs_devices, progress.current)


def _events(child: subprocess.Popen[bytes], read_end: int, progress: Progress) -> Iterator[Event]:
    """The child's events until it has ended; a grandchild that holds the pipe open does not keep us here."""
    os.set_blocking(read_end, False)
    rest = b""
    with selectors.DefaultSelector() as selector:
        selector.register(read_end, selectors.EVENT_READ)
        ended = False
        while not ended:
            ended = child.poll() is not None
            if selector.select(0 if ended else _TICK):
                data = _read_all(read_end)
                if not data and not ended:
                    child.wait()
                *lines, rest = (rest + data).split(b"\n")
                for line in lines:
                    yield Event.from_line(line)
            progress.tick()


def _read_all(fd: int) -> bytes:
    parts = []
    try:
        while part := os.read(fd, 1 << 16):
            parts.append(part)
    except BlockingIOError:
        pass
    return b"".join(parts)


@contextmanager
def _interrupts(child: subprocess.Popen[bytes], own_group: bool, progress: Progress) -> Iterator[list[int]]:
    """The signals that asked us to stop while the block ran."""
    received: list[int] = []

    def stop(number: int, _frame: FrameType | None) -> None:
        received.append(number)
        if len(received) > 1:
            _signal(child, signal.SIGKILL, own_group)
            return
        if own_group or number != signal.SIGINT:
            _signal(child, signal.SIGINT, own_group)
        progress.say("interrupted; what is finished is kept, once the compiler lets go (Ctrl-C again: stop at once)")

    if threading.current_thread() is not threading.main_thread():
        yield received
        return
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    heeded = [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, stop) for number in heeded}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _signal(child: subprocess.Popen[bytes], number: int, own_group: bool) -> None:
    if child.poll() is not None:
        return
    if own_group:
        os.killpg(child.pid, number)
    else:
        child.send_signal(number)


def _is_terminal(stream: object) -> bool:
    try:
        return bool(stream.isatty())  # type: ignore[attr-defined]
    except (AttributeError, ValueError):  # no stdin at all, or a closed one
        return False
