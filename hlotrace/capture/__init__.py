"""What runs in or beside the user's program.

`hlotrace.capture` is this package and a function at once: calling it is `hlotrace.capture.api.capture`.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any


class _Callable(ModuleType):
    def __call__(self, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
        from hlotrace.capture.api import capture

        return capture(fn, *args, **kwargs)


sys.modules[__name__].__class__ = _Callable
