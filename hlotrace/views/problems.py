"""What could not be read or does not add up, and what is missing because of it?

problems
file                                          place    what                      consequence
module_0000.jit_f.after_optimizations.txt     12:40    unknown dtype 'q7'        its bytes are not known
"""

from __future__ import annotations

from hlotrace.views.blocks import Block, Grid, Heading, Note, ShownColumn
from hlotrace.views.common import cut
from hlotrace.views.view import TOP, Tables, View

QUESTION = "What could not be read or does not add up, and what is missing because of it?"


def build(tables: Tables, *, top: int) -> list[Block]:
    """The problems table, or one line that there are none, and what the capture noted."""
    if tables.traces:
        tables["steps"]  # reads the traces, so that their problems are among the others
    found = tables["problems"]
    heading = Heading("Problems", QUESTION)
    noted = [Note(f"The capture noted: {note}") for note in (tables.manifest.notes if tables.manifest else [])]
    if found.empty:
        return [heading, Note("Nothing: everything was read, and what can be compared agrees."), *noted]
    columns = (
        ShownColumn("file", "file", emphasis="path"),
        ShownColumn("place", "place", emphasis="code"),
        ShownColumn("what", "what"),
        ShownColumn("consequence", "consequence"),
    )
    return [heading, Grid("Problems", cut(found, top), columns, len(found)), *noted]


VIEW = View("problems", "Problems", QUESTION, (TOP,), build)
