"""The `-memory-usage-report.txt` side file: the compiler's own total of each memory space.

Memory Space: vmem (color=1)
Total bytes: 85983232 (82.00MiB)
"""

from __future__ import annotations

import re

_TOTAL = re.compile(r"^Memory Space: .*\(color=(\d+)\)\nTotal bytes: (\d+)", re.MULTILINE)


def read_totals(text: str) -> dict[int, int]:
    """Bytes of all allocations by memory space; empty where the text holds no total."""
    return {int(color): int(total) for color, total in _TOTAL.findall(text)}
