"""What a failed compile says: out of which memory it ran, how much it needed, how much there was."""

from __future__ import annotations

import re

from hlotrace.bundle import Failure

_LONGEST_LINE = 200
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_SIZE = r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B\b|\b)(?:ytes)?"
_USED_OF = re.compile(rf"[Uu]sed\s+{_SIZE}\s+of\s+{_SIZE}")
_EXCEEDS = re.compile(rf"\(?{_SIZE}\)?\s+exceeds?\s+(?:the\s+)?(?:available|limit)[^()\d]*\(?{_SIZE}")
_NEEDS_HAS = re.compile(rf"[Rr]equire[sd]?\s+{_SIZE}.*?(?:available|limit|capacity)[^\d]*{_SIZE}", re.DOTALL)
_SIZE_LIMIT = re.compile(rf"size\s+{_SIZE}\s+and\s+limit\s+{_SIZE}")
_ATTEMPT = re.compile(rf"(?:allocat\w*|request\w*)\s+{_SIZE}", re.IGNORECASE)
_OUT_OF_MEMORY = re.compile(r"RESOURCE_EXHAUSTED|[Oo]ut of memory|[Rr]an out of memory|CompileTime\w*Oom|OOM")
_SPACE = re.compile(r"memory space (\w+)|CompileTime(\w+?)Oom|\b(hbm|vmem|smem|cmem)\b", re.IGNORECASE)


def compile_failure(message: str) -> Failure:
    """The failure that the compiler's own message tells."""
    if not _OUT_OF_MEMORY.search(message):
        return Failure("compile", message)
    needed, available = _sizes(message)
    space = _SPACE.search(message)
    name = next((group for group in space.groups() if group), None) if space else None
    return Failure("out_of_memory", message, needed, available, name.lower() if name else None)


def first_line(error: BaseException) -> str:
    """What an exception says, as much of it as fits a line."""
    line = str(error).strip().partition("\n")[0]
    return line if len(line) <= _LONGEST_LINE else line[: _LONGEST_LINE - 1] + "…"


def named_line(error: BaseException) -> str:
    """The last line of an exception's traceback, as much of it as fits a line."""
    return f"{type(error).__name__}: {first_line(error)}".removesuffix(": ")


def _sizes(message: str) -> tuple[int | None, int | None]:
    for pattern in (_USED_OF, _EXCEEDS, _SIZE_LIMIT, _NEEDS_HAS):
        match = pattern.search(message)
        if match:
            return _bytes(match[1], match[2]), _bytes(match[3], match[4])
    match = _ATTEMPT.search(message)
    return (_bytes(match[1], match[2]), None) if match else (None, None)


def _bytes(number: str, unit: str) -> int:
    return round(float(number) * _UNITS[unit.upper()])
