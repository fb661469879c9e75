"""How a command ends: one line on stderr for every error, and an exit code."""

from __future__ import annotations

import os
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from hlotrace.errors import HlotraceError

BUG = 70
INTERRUPTED = 130
BROKEN_PIPE = 141
PATIENCE = 1.0


class ReaderGoneError(Exception):
    """Whoever read our output has gone, as `| head` does. Typer would end with 1 on the OSError itself."""


def write(text: str) -> None:
    """Write to stdout; a terminal that cannot show a character gets a question mark."""
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise ReaderGoneError from None


def reading() -> Callable[[int, int], None] | None:
    """Tell on a terminal's stderr how far reading has come, once it takes longer than a second; None elsewhere."""
    if not sys.stderr.isatty():
        return None
    from hlotrace import native

    native.before_compiling[:] = [_tell_of_compiling]
    begun = time.monotonic()

    def show(done: int, total: int) -> None:
        if done == total:
            sys.stderr.write("\r\x1b[K")
        elif time.monotonic() - begun > PATIENCE:
            sys.stderr.write(f"\r\x1b[Kreading modules: {done:,} of {total:,}")
        sys.stderr.flush()

    return show


def _tell_of_compiling() -> None:
    sys.stderr.write("\r\x1b[Kcompiling the readers for this machine, once; it takes some 15 seconds")
    sys.stderr.flush()


def guarded(command: Callable[[], object]) -> int:
    """Run a typer application, not in its standalone mode; what it raises becomes a line and an exit code."""
    try:
        code = command()
        sys.stdout.flush()
    except (ReaderGoneError, BrokenPipeError):
        # Nothing more can be written, not even what is left in the buffer at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except KeyboardInterrupt:
        return INTERRUPTED
    except HlotraceError as error:
        return _say(str(error), error.exit_code)
    except Exception as error:
        return _usage_or_bug(error)
    return code if isinstance(code, int) else 0


def _usage_or_bug(error: Exception) -> int:
    if hasattr(error, "format_message"):
        return _say(_usage(error, error.format_message()), 2)
    if type(error).__name__ == "Abort":
        return INTERRUPTED
    if isinstance(error, OSError):
        place = f"{error.filename}: " if error.filename else ""
        return _say(f"{place}{error.strerror or error}", 2)
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "hlotrace" in frame.filename]
    place = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    what = f"a bug in hlotrace: {type(error).__name__}: {error}{place}."
    return _say(f"{what} Please report it with what `hlotrace --debug ...` prints.", BUG)


def _usage(error: Exception, message: str) -> str:
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "hlotrace"
    own = " A script's own arguments come after --." if command.endswith("capture") else ""
    return f"{message.rstrip('.?')}.{own} See: {command} --help"


def _say(message: str, code: int) -> int:
    if os.environ.get("HLOTRACE_DEBUG"):
        traceback.print_exc()
    print("hlotrace: " + " ".join(message.split("\n")), file=sys.stderr)
    return code
