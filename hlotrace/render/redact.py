"""What must not leave the machine with a report: home directories, user names, this machine's name.

Paths keep what says something about the program: `/home/name/model/layer.py` becomes `~/model/layer.py`.
"""

from __future__ import annotations

import dataclasses
import getpass
import re
import socket
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from hlotrace.views.blocks import Figures, Grid

if TYPE_CHECKING:
    import pandas as pd

    from hlotrace.views.blocks import Block

T = TypeVar("T")

USER, HOST = "user", "host"
SHORTEST_NAME = 3
NOT_TELLING = frozenset(
    (
        *("root", "user", "users", "admin", "ubuntu", "debian", "runner", "nobody", "daemon", "jovyan", "vscode"),
        *(
            "shared",
            "public",
            "data",
            "models",
            "project",
            "projects",
            "tmp",
            "work",
            "default",
            "localhost",
            "localdomain",
            "host",
            "main",
        ),
        *("tpu", "cpu", "gpu", "xla", "hlo", "jax", "jit"),
    )
)
"""Names that identify nobody, and words of the subject that a machine may be named after: left as they are."""

# A slash before `home` belongs to a path from the root, not to a scope such as `jit(f)/home/x` or to `src/home`.
_PATHS_START = r"(?<![\w.)\]}~-])"
_WORD = r"[^/\\\s:;,\"'<>|()\[\]{}]+"
# A name of several words ends at a slash: without one, the words after a path are a sentence.
_NAMES = rf"(?:{_WORD}(?: {_WORD}){{1,2}}(?=[\\/])|{_WORD})"
_MOUNTS = (
    r"(?:/(?:usr/local/google|afs|beegfs|ceph|cluster|data\d*|export|fs\d*|fsx|gpfs|lustre|mnt|net|nfs\d*|projects?|shared"
    r"|storage|var|vol\d*|work|workspace|[a-z]))"
)
# Large sites spread homes over folders of one letter or digit: /home/a/alice, /home/x/0/alice.
_SPREAD = r"(?:(?P<letter>\w)/(?=(?P=letter))|\w/\w/)?"
_HOMES = re.compile(
    rf"{_PATHS_START}(?:{_MOUNTS}{{0,3}}/(?:home|users)/{_SPREAD}|/(?:u|scratch)/)(?P<name>{_WORD})"
    rf"|{_PATHS_START}{_MOUNTS}{{0,3}}/Users/(?P<mac>{_NAMES})"
    rf"|(?<![\w])[A-Za-z]:[\\/]+(?:Users|Documents and Settings)[\\/]+(?P<windows>{_NAMES})"
    rf"|{_PATHS_START}/root(?![\w.-])"
)


_NAMED = ("name", "mac", "windows")


class Redactor:
    """Replaces what is private in texts.

    Args:
        texts: all texts there will be: the users whose homes stand in one are unnamed in all.
        users: further user names; this user's when not given.
        hosts: names of machines; this machine's when not given.
    """

    def __init__(
        self, texts: Iterable[str] = (), users: Iterable[str] | None = None, hosts: Iterable[str] | None = None
    ) -> None:
        found = {match[group] for text in texts for match in _HOMES.finditer(text) for group in _NAMED}
        names = {part for name in found if name for part in (name, *name.split())} | set(
            _this_user() if users is None else users
        )
        self._words = _words(names, USER) | _words(this_machine() if hosts is None else hosts, HOST)
        self._pattern = _any_of(self._words)
        self._own_home = _own_home()

    def __call__(self, text: str) -> str:
        """The text without what is private."""
        if self._own_home is not None:
            text = self._own_home.sub("~", text)
        text = _HOMES.sub("~", text)
        return self._pattern.sub(lambda match: self._words[match[0].lower()], text) if self._pattern else text


def redacted(blocks: Iterable[Block], **names: Iterable[str]) -> list[Block]:
    """The blocks without home directories, user and host names; of frames only what is shown."""
    shown = [_only_shown(block) for block in blocks]
    redactor = Redactor((text for block in shown for text in _texts(block)), **names)
    return [_mapped(block, redactor) for block in shown]


def _only_shown(block: T) -> T:
    if isinstance(block, Figures):
        return dataclasses.replace(block, frame=None)
    if not isinstance(block, Grid):
        return block
    shown = (name for column in block.columns for name in (column.name, column.detail) if name)
    names = list(dict.fromkeys(shown))
    return dataclasses.replace(block, frame=block.frame[names])


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif dataclasses.is_dataclass(value):
        for item in dataclasses.fields(value):
            yield from _texts(getattr(value, item.name))
    elif isinstance(value, dict):
        for pair in value.items():
            yield from _texts(pair)
    elif isinstance(value, tuple | list):
        for item in value:
            yield from _texts(item)
    elif _is_frame(value):
        for column in _text_columns(value):
            yield from _texts(value[column].tolist())


def _mapped(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [item.name for item in dataclasses.fields(value)]
        return dataclasses.replace(value, **{name: _mapped(getattr(value, name), change) for name in names})
    if isinstance(value, dict):
        return {_mapped(key, change): _mapped(item, change) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return type(value)(_mapped(item, change) for item in value)
    if _is_frame(value):
        columns = {name: [_mapped(cell, change) for cell in value[name].tolist()] for name in _text_columns(value)}
        return value.assign(**columns)
    return value


def _is_frame(value: Any) -> bool:
    return hasattr(value, "columns") and hasattr(value, "assign")


def _text_columns(frame: pd.DataFrame) -> list[str]:
    """Columns that can hold text: everything but numbers and truth values."""
    return [str(name) for name in frame.columns if frame[name].dtype.kind not in "iufb"]


def _this_user() -> set[str]:
    try:
        return {getpass.getuser()}
    except (OSError, KeyError, ImportError):
        return set()


def this_machine() -> set[str]:
    """The names of the machine that this runs on."""
    full = socket.gethostname()
    return {full, full.partition(".")[0]}


def _own_home() -> re.Pattern[str] | None:
    try:
        home = str(Path.home())
    except RuntimeError:
        return None
    return re.compile(rf"{_PATHS_START}{re.escape(home)}(?![\w.-])") if len(home) > 1 else None


def _words(names: Iterable[str], replacement: str) -> dict[str, str]:
    lowered = {name.lower() for name in names}
    return {name: replacement for name in lowered if len(name) >= SHORTEST_NAME and name not in NOT_TELLING}


def _any_of(words: Iterable[str]) -> re.Pattern[str] | None:
    longest_first = sorted(words, key=lambda word: (-len(word), word))
    if not longest_first:
        return None
    return re.compile(rf"(?<![A-Za-z0-9])(?:{'|'.join(map(re.escape, longest_first))})(?![A-Za-z0-9])", re.IGNORECASE)
