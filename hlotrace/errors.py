"""Every error a user can meet: where it happened, what was expected, what to do next."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class HlotraceError(Exception):
    """A mistake that the user can mend; the command line prints it as one line and exits with 2.

    Args:
        what: what is wrong, and what was expected instead.
        place: the file, `file:line:column`, `file at byte N`, or argument it concerns.
        remedy: what to do about it.
    """

    exit_code = 2

    def __init__(self, what: str, *, place: str | None = None, remedy: str | None = None) -> None:
        self.what = what
        self.place = place
        self.remedy = remedy
        super().__init__(str(self))

    def __str__(self) -> str:
        place = f"{self.place}: " if self.place else ""
        remedy = f" {self.remedy}" if self.remedy else ""
        return f"{place}{self.what.rstrip('.')}.{remedy}"


class ParseError(HlotraceError):
    """A file that is not what its place or name promises; `place` says where reading stopped."""


class CaptureError(HlotraceError):
    """A capture that could not be made."""


class MissingDependency(HlotraceError):
    """An optional package is needed here; the remedy holds the command that installs it."""


def nearest(name: str, known: Iterable[str], count: int = 3) -> list[str]:
    """The known names closest to `name` in spelling, best first, at most `count`."""
    return difflib.get_close_matches(name, list(known), n=count, cutoff=0.4)


MOST_NAMED = 24
"""Of more known names than this an error gives a few."""


def unknown_name(kind: str, name: str, known: Iterable[str], *, place: str | None = None) -> HlotraceError:
    """The error for a name that is not among the known ones: all of them, nearest first; of many the nearest few."""
    names = list(dict.fromkeys(known))
    close = nearest(name, names)
    if not names:
        remedy = f"There is no {kind} here."
    elif len(names) <= MOST_NAMED:
        remedy = f"Known: {', '.join(close + [other for other in names if other not in close])}."
    elif close:
        remedy = f"Known: {', '.join(close)}, the nearest of {len(names):,}."
    else:
        remedy = f"Known: {', '.join(names[:3])} and {len(names) - 3:,} more."
    return HlotraceError(f"no {kind} is named {name!r}", place=place, remedy=remedy)
