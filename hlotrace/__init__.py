"""Profiling and visualization for XLA: capture a model, read what the compiler made of it, see it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hlotrace.capture.api import capture as capture
    from hlotrace.capture.api import record as record
    from hlotrace.load import load as load

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """`load`, `capture`, `record` and the errors, imported when they are first asked for."""
    if name in ("load", "capture"):
        import importlib

        return importlib.import_module(f"hlotrace.{name}")
    if name == "record":
        from hlotrace.capture.api import record

        return record
    if name in ("HlotraceError", "ParseError", "CaptureError"):
        from hlotrace import errors

        return getattr(errors, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
