"""Captures from Python: one function with its arguments, or everything that a `with` block compiles.

They run in the calling process and leave it as it was: its environment, its JAX configuration, and, since what was
compiled meanwhile is forgotten, its compiled programs too.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hlotrace import bundle
from hlotrace.capture.destination import Destination, told_when_full
from hlotrace.capture.failures import named_line
from hlotrace.capture.outcome import Round, drop_unfinished, make_manifest, nothing_compiled
from hlotrace.capture.process import ChildEnd
from hlotrace.capture.run import SUFFIX
from hlotrace.capture.spec import CHILD_RESULT, CaptureSpec
from hlotrace.capture.targets import choose, for_devices
from hlotrace.errors import CaptureError, MissingDependency

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hlotrace.capture.session import Session
    from hlotrace.capture.targets import Choice

_ENDED = ChildEnd(returncode=0, interrupted=False, needs_devices=None, during="")


def capture(
    fn: Any,
    /,
    *args: Any,
    target: str | Sequence[str] | None = None,
    out: str | os.PathLike[str] | None = None,
    steps: int = 3,
    passes: bool = False,
    force: bool = False,
    **kwargs: Any,
) -> Path:
    """Capture `fn` for its arguments, and give the bundle's path.

    Nothing of the caller's is consumed: donated arguments are copied before the function runs.

    Args:
        fn: a function, under `jax.jit` or not.
        *args: its arguments: arrays, pytrees of them, or `jax.ShapeDtypeStruct`s.
        target: TPU topologies to compile for without running, such as `"v5e:2x2"`; None is this machine's own backend.
        out: the bundle's place; by default NAME.hlotrace in the current directory.
        steps: without a target, how often to run it for the profiler's trace; 0 only compiles.
        passes: dump the module after every pass too.
        force: replace a bundle that is there; a partial one goes beside a complete one.
        **kwargs: its keyword arguments.

    Raises:
        CaptureError: no such target, a bundle is there already, no libtpu, or nothing was compiled.
    """
    words = [target] if isinstance(target, str) else list(target or [])
    choices = [choose(word) for word in words]
    name = str(getattr(fn, "__qualname__", type(fn).__name__))
    _require_jax()
    with _bundle(Path(out or f"{name.rpartition('.')[2].strip('<>')}{SUFFIX}"), name, force) as (staging, rounds):
        fitting: list[Choice | None] = [_fitting(choice, (args, kwargs)) for choice in choices]
        for choice in fitting or [None]:
            spec = _spec(staging, choice, steps=0 if choice else steps, passes=passes)
            with _recording(spec, choice, rounds):
                _compile(fn, args, kwargs, run=bool(spec.steps))
    return rounds.place


@contextlib.contextmanager
def record(out: str | os.PathLike[str], *, steps: int = 3, passes: bool = False, force: bool = False) -> Iterator[None]:
    """Capture every program that is compiled inside the block, for this machine's own backend.

    What was compiled before is forgotten, so that it is compiled anew, and captured, where the block calls it.

    Args:
        out: the bundle's place. It is written as the block ends, also when the block raises.
        steps: how many steps of the main program go into the profiler's trace; 0 makes none.
        passes: dump the module after every pass too.
        force: replace a bundle that is there; a partial one goes beside a complete one.

    Raises:
        CaptureError: a bundle is there already, or nothing was compiled.
    """
    _require_jax()
    with _bundle(Path(out), "the block", force) as (staging, rounds):
        spec = _spec(staging, None, steps=steps, passes=passes)
        with _recording(spec, None, rounds):
            yield


class _Rounds(list[Round]):
    """What each target gave, and in the end where the bundle is."""

    place: Path


@contextlib.contextmanager
def _bundle(out: Path, name: str, force: bool) -> Iterator[tuple[Path, _Rounds]]:
    """A staging directory that becomes the bundle as the block ends."""
    destination = Destination(out, force=force)
    rounds = _Rounds()
    try:
        try:
            yield destination.staging, rounds
        finally:
            (destination.staging / CHILD_RESULT).unlink(missing_ok=True)
            programs = [program for round_ in rounds for program in round_.result.programs]
            if programs:
                rounds.place = _written(destination, name, rounds, programs)
        if not programs:
            raise nothing_compiled(name, rounds)
    finally:
        destination.discard()


def _written(destination: Destination, name: str, rounds: _Rounds, programs: list[bundle.Program]) -> Path:
    """Where the bundle is, once it is whole."""
    lost = next((round_.result.error for round_ in rounds if round_.result.error), None)
    if lost is not None:
        raise CaptureError(lost)
    with told_when_full(destination.path.parent):
        drop_unfinished(destination.staging, programs)
        manifest = make_manifest([], name, rounds)
        bundle.write_manifest(destination.staging, manifest)
        return destination.commit(manifest.status)


@contextlib.contextmanager
def _recording(spec: CaptureSpec, choice: Choice | None, rounds: _Rounds) -> Iterator[None]:
    """Hooks in JAX while the block runs."""
    from hlotrace.capture.install import install
    from hlotrace.capture.session import Session, compiler_environment

    session = Session(spec, environment=compiler_environment())
    with _left_as_it_was(spec):
        watch = install(session)
        try:
            yield
            session.finished, session.exit_code = True, 0
        except BaseException as error:
            session.script_error = named_line(error)
            raise
        finally:
            _finish(session)
            watch.remove()
            rounds.append(Round(choice, _ENDED, session.result()))


def _finish(session: Session) -> None:
    for listener in session.listeners:
        listener.finish()


@contextlib.contextmanager
def _left_as_it_was(spec: CaptureSpec) -> Iterator[None]:
    """Environment variables, JAX's choice of platforms, its backends and its compiled programs."""
    import jax
    from jax.extend import backend

    from hlotrace.capture.install import backend_if_started
    from hlotrace.capture.topology import prepare_environment

    config: Any = jax.config
    forget: Any = jax.clear_caches
    stop: Any = backend.clear_backends
    variables, platforms = dict(os.environ), config.jax_platforms
    started = backend_if_started() is not None
    forget()
    if spec.target is not None:
        prepare_environment(Path(spec.staging) / bundle.LOGS)
    try:
        yield
    finally:
        forget()
        if spec.target is not None and not started:
            stop()  # what stood in for the target is not this process's own
        for name in set(os.environ) - set(variables):
            del os.environ[name]
        os.environ.update(variables)
        if config.jax_platforms != platforms:
            config.update("jax_platforms", platforms)


def _compile(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any], *, run: bool) -> None:
    """Compile, and run once; the profile's other steps are made from that run."""
    import jax

    from hlotrace.capture.entry import compile_function

    if run:
        args, kwargs = jax.tree.map(lambda leaf: leaf.copy() if isinstance(leaf, jax.Array) else leaf, (args, kwargs))
    compile_function(fn, *args, run=run, **kwargs)


def _fitting(choice: Choice, arguments: Any) -> Choice:
    """A bare generation, as large as the devices that the arguments are on."""
    import jax

    shardings = [leaf.sharding for leaf in jax.tree.leaves(arguments) if getattr(leaf, "sharding", None) is not None]
    used = [device.id for sharding in shardings for device in sharding.device_set]
    return for_devices(choice, max(used, default=0) + 1) if choice.grows else choice


def _spec(staging: Path, choice: Choice | None, *, steps: int, passes: bool) -> CaptureSpec:
    return CaptureSpec(
        staging=str(staging), target=choice.spec if choice else None, steps=steps, passes=passes, argv=[]
    )


def _require_jax() -> None:
    try:
        import jax  # noqa: F401
    except ModuleNotFoundError:
        raise MissingDependency(
            "a capture needs jax, which is not installed", remedy="Install it: pip install 'hlotrace[jax]'."
        ) from None
