"""How one compile's dumps get into its folder, and into the user's own where XLA_FLAGS name one."""

from __future__ import annotations

import os
import re
import shutil
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

_OWN = re.compile(r"--xla_dump_to=['\"]?([^\s'\"]+)")
_NOT_FOLDERS = ("-", "sponge")


def dump_options(folder: Path, *, passes: bool) -> tuple[tuple[str, Any], ...]:
    """Compiler options of one compile that write its dumps, all of them and only its own, into its folder."""
    options = {
        "xla_dump_to": str(folder),
        "xla_dump_hlo_as_text": True,
        "xla_dump_hlo_as_proto": True,
        "xla_dump_hlo_module_re": ".*",
    }
    if passes:
        options["xla_dump_hlo_pass_re"] = ".*"
    return tuple(options.items())


def give_user_theirs(folder: Path) -> None:
    """Copy a compile's dumps to where the user's XLA_FLAGS would have had them."""
    own = _OWN.search(os.environ.get("XLA_FLAGS", ""))
    if own and own[1] not in _NOT_FOLDERS and folder.is_dir():
        with suppress(OSError):  # XLA does not fail either where it cannot write its dumps
            shutil.copytree(folder, own[1], dirs_exist_ok=True)
