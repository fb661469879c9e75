"""Runs a script in this process as Python would, with the capture's hooks in place once it imports JAX."""

from __future__ import annotations

import atexit
import builtins
import importlib.abc
import importlib.machinery
import importlib.util
import io
import os
import sys
import time
from contextlib import suppress
from pathlib import Path
from types import ModuleType, TracebackType
from typing import TYPE_CHECKING, Any

from hlotrace import bundle
from hlotrace.capture.failures import named_line
from hlotrace.capture.session import Session, compiler_environment
from hlotrace.capture.shortage import devices_asserted, devices_wanted
from hlotrace.capture.spec import CaptureSpec, Event
from hlotrace.capture.targets import choose, for_devices
from hlotrace.capture.topology import collect_logs, prepare_environment
from hlotrace.errors import CaptureError, HlotraceError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_MOMENT = 0.5
_OURS = str(Path(__file__).parent) + os.sep


def main(spec: CaptureSpec) -> int:
    """Run what the spec names; gives the exit code."""
    session = Session(spec, environment=compiler_environment())
    if spec.target is not None:
        prepare_environment(session.staging / bundle.LOGS)
    atexit.register(_close, session)
    when_jax_is_imported(lambda: _install(session))
    os.chdir(spec.cwd)
    try:
        return _run(session, _run_entry if spec.entry else _run_script)
    finally:
        for listener in session.listeners:
            listener.finish()


def _install(session: Session) -> None:
    from hlotrace.capture.install import install

    try:
        install(session)
    except HlotraceError as error:
        raise SystemExit(_told(session, error)) from None


def _told(session: Session, error: HlotraceError) -> int:
    """Our own error, in the result and to the parent, which prints it; gives the exit code."""
    session.error = str(error)
    session.say(Event("error", detail=str(error)))
    session.write(now=True)
    return error.exit_code


def _close(session: Session) -> None:
    """Registered before the script's own `atexit` functions, so it runs after them."""
    session.write(now=True)
    with session.writing():
        collect_logs(session.staging / bundle.LOGS)


def when_jax_is_imported(then: Callable[[], None]) -> None:
    """Call `then` as soon as the `jax` package is there, now or when the script imports it."""
    if "jax" in sys.modules:
        then()
    else:
        sys.meta_path.insert(0, _JaxFinder(then))


class _JaxFinder(importlib.abc.MetaPathFinder):
    """Finds `jax` as the other finders do, and hears when it has been executed."""

    def __init__(self, then: Callable[[], None]) -> None:
        self._then = then

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002 (the protocol's)
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != "jax":
            return None
        sys.meta_path.remove(self)
        found = importlib.util.find_spec("jax")
        if found is not None and found.loader is not None:
            found.loader = _Loader(found.loader, self._then)
        return found


class _Loader(importlib.abc.Loader):
    """The real loader, and then the call."""

    def __init__(self, real: Any, then: Callable[[], None]) -> None:
        self._real = real
        self._then = then

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        created: ModuleType | None = self._real.create_module(spec)
        return created

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self._real
        if module.__spec__ is not None:
            module.__spec__.loader = self._real
        self._real.exec_module(module)
        self._then()


def _run(session: Session, body: Callable[[CaptureSpec], None]) -> int:
    """Run the user's code; its exceptions print as its own, and give 1."""
    try:
        body(session.spec)
        session.finished, session.exit_code = True, 0
    except SystemExit as leaving:
        session.finished, session.exit_code = session.error is None, _exit_code(leaving)
        raise
    except KeyboardInterrupt as error:
        session.exit_code = 130
        _print_as_python_would(error)
    except HlotraceError as error:
        session.exit_code = _told(session, error)
    except BaseException as error:
        session.finished, session.exit_code = True, 1
        session.script_error = named_line(error)
        _say_what_is_short(session, error)
        _print_as_python_would(error)
        _name_a_topology(session, error)
    return session.exit_code


def _run_script(spec: CaptureSpec) -> None:
    """Execute the script as `__main__`."""
    assert spec.script is not None
    sys.argv = [spec.script, *spec.argv]
    path = os.path.abspath(spec.script)  # noqa: PTH100 (Python sets __file__ so, symbolic links kept)
    if not sys.flags.safe_path:
        sys.path.insert(0, os.path.dirname(os.path.realpath(path)))  # noqa: PTH120
    module = ModuleType("__main__")
    loader = importlib.machinery.SourceFileLoader("__main__", path)
    module.__dict__.update(
        __file__=path, __builtins__=builtins, __loader__=loader, __package__=None, __spec__=None, __cached__=None
    )
    sys.modules["__main__"] = module
    with io.open_code(path) as file:
        source = file.read()
    exec(compile(source, path, "exec", dont_inherit=True), module.__dict__)


def _run_entry(spec: CaptureSpec) -> None:
    """Call the entry function, and compile what it returns."""
    from hlotrace.capture import entry

    assert spec.entry is not None
    sys.argv = [spec.entry, *spec.argv]
    function = entry.load(spec.entry)
    entry.compile_returned(function(), spec.entry, run=spec.target is None)


def _say_what_is_short(session: Session, error: BaseException) -> None:
    """The parent may start over with a larger topology; it is given a moment to do so before the traceback shows."""
    target = session.spec.target
    wanted = devices_wanted(error, target.device_count) if target else None
    if target is not None and wanted is not None:
        session.say(Event("needs_devices", target=target.target, detail=str(wanted)))
        time.sleep(_MOMENT)


def _name_a_topology(session: Session, error: BaseException) -> None:
    """A script that checks how many devices there are says to Python alone how many it wants."""
    target = session.spec.target
    if target is None or devices_wanted(error, target.device_count) is not None:
        return
    wanted = devices_asserted(error, target.device_count)
    if wanted is None:
        return
    with suppress(CaptureError):
        generation = choose(target.topology_name.partition(":")[0])
        example = for_devices(generation, wanted or 4 * target.device_count).spec.target
        session.tell(
            f"the script may want another number of devices than the {target.device_count} of {target.target}: "
            f"name a topology that has it, such as --target {example}"
        )


def _exit_code(leaving: SystemExit) -> int:
    if leaving.code is None:
        return 0
    return leaving.code if isinstance(leaving.code, int) else 1


def _print_as_python_would(error: BaseException) -> None:
    clean(error)
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, error.__traceback__
    sys.excepthook(type(error), error, error.__traceback__)


def clean(error: BaseException) -> None:
    """Take our frames out of an exception's tracebacks, its causes' too."""
    seen: set[int] = set()
    todo: list[BaseException | None] = [error]
    while todo:
        link = todo.pop()
        if link is None or id(link) in seen:
            continue
        seen.add(id(link))
        link.__traceback__ = without_our_frames(link.__traceback__)
        todo += [link.__cause__, link.__context__]


def without_our_frames(frames: TracebackType | None) -> TracebackType | None:
    """The traceback without the frames of this package."""
    kept = []
    while frames is not None:
        if not frames.tb_frame.f_code.co_filename.startswith(_OURS):
            kept.append(frames)
        frames = frames.tb_next
    result = None
    for frame in reversed(kept):
        frame.tb_next = result
        result = frame
    return result
