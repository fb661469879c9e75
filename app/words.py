"""Words that a newcomer does not know: what each means, for tooltips and for the help."""

from __future__ import annotations

WORDS: dict[str, str] = {
    "launch": "something the device is asked to start; what runs inside a fusion, and what costs nothing, is none",
    "launches saved": "launches that fusing spared: had each member of a fusion been started by itself",
    "kept out": "bytes that stay inside a fusion and never touch memory, where unfused ops would write and read them",
    "position": "the place of an instruction in the schedule, counted from 0",
    "schedule": "the order, fixed by the compiler, in which the program's instructions run",
    "live": "the first and the last position at which a value is needed; one past the last is the program's end",
    "fusion.50{1}": "a buffer: the second part, counted from {0}, of what fusion.50 gives; {} is the whole",
    "preallocated": "the one block that a TPU's compiler sets aside for all its temporaries",
    "alias": "a parameter whose place the result takes over, such as donated weights",
    "control": "tuples, loops, branches and calls: they say what runs, and compute nothing themselves",
}

_SAID_AS = {
    "launches": "launch",
    "launches before": "launch",
    "launches after": "launch",
    "saved": "launches saved",
    "bytes kept out of memory": "kept out",
    "kept out of memory": "kept out",
    "schedule position": "position",
    "value": "fusion.50{1}",
    "donated": "alias",
}
"""What labels call them."""


def meaning(label: str) -> str:
    """What a label or category means; empty for a plain word."""
    return WORDS.get(_SAID_AS.get(label, label), "")


def meanings(labels: tuple[str, ...]) -> dict[str, str]:
    """Of these labels those that have a meaning here, with it."""
    return {label: meaning(label) for label in labels if meaning(label)}
