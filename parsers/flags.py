"""Compiler flags as a dump lists them: `flagfile`, `tpu_comp_env.txt` and `debug_options`.

A flagfile has `--name=value` on each line; the others are text protos, of `name: value` and of messages:

    xla_ra_split {
      spec: "true"
    }
"""

from __future__ import annotations

import re

FLAG_FILES = ("flagfile", "tpu_comp_env", "debug_options")
"""The files of a dump that hold flags."""

_FLAG = re.compile(r"--(?P<name>[\w\-]+)(?:=(?P<value>.*))?$")
_FIELD = re.compile(r'\s*(?P<name>\w+):\s*(?P<value>"(?:[^"\\]|\\.)*"|\S.*?)\s*$')
_OPENING = re.compile(r"\s*(\w+):?\s*\{\s*$")
_CLOSING = re.compile(r"\s*\}\s*$")
_NOTHING = re.compile(r"\s*(?:#.*)?$")


def read_flags(text: str) -> tuple[list[tuple[str, str]], list[tuple[str, str, str]]]:
    """The flags of a file in their order, and problems as (place, what, consequence).

    A flag without a value is `true`; a quoted value loses its quotes. A repeated field is several flags. A field of a
    message is named `message.field`, libtpu's `spec` after the message alone.
    """
    flags: list[tuple[str, str]] = []
    problems: list[tuple[str, str, str]] = []
    around: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        if flag := _FLAG.match(line):
            flags.append((flag["name"], _value(flag["value"])))
        elif opening := _OPENING.match(line):
            around.append(opening[1])
        elif field := _FIELD.match(line):
            name = ".".join([*around, field["name"]])
            flags.append((name.removesuffix(".spec"), _value(field["value"])))
        elif around and _CLOSING.match(line):
            around.pop()
        elif not _NOTHING.match(line):
            problems.append((f"line {number}", f"{line[:80]!r} is no flag", "it is left out of the flags"))
    if around:
        problems.append(("end", f"the message {around[-1]!r} is not closed", "flags after it may be missing"))
    return flags, problems


def _value(text: str | None) -> str:
    if text is None:
        return "true"
    if len(text) > 1 and text[0] == text[-1] == '"':
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    return text
