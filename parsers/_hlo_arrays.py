"""Where the scanner of HLO text puts what it finds: one array of integers that holds a state and tables.

The scanner is compiled by numba, for which two arrays as arguments mean quick calls and a quick compilation: so all
tables lie in one array, `memory`. The state stands at its beginning, with the places where the tables begin; `Found`
gives the tables as arrays of their own. Texts are spans: places of bytes in the text.
"""

from __future__ import annotations

import contextlib

import numpy as np
from numpy.typing import NDArray

from hlotrace.hlo.module import CALL_ROLES

Ints = NDArray[np.int64]

# Columns of `rows`, the instructions.
NAME, NAME_END, NAME_HASH, SHAPE, OPCODE, COMPUTATION, PARAMETER, LITERAL, LITERAL_END = range(9)
OP_NAME, OP_NAME_END, FILE, FILE_END, SOURCE_LINE, FRAME, CONFIG, CONFIG_END, DONE = range(9, 18)
ROW_WIDTH = 18
# Columns of `operands`; an instruction in place of a name, and a shape alone, have no name (START is -1).
OWNER, START, STOP, ELEMENT, TARGET, OPERAND_SHAPE = range(6)
# Columns of `calls` (a computation written in place has START -1 and its number in STOP) and of `pieces`.
ROLE = 3
# Columns of `computations`; one written in place has NAME -1.
C_NAME, C_NAME_END, C_PLACE, C_ROOT, C_ENTRY, C_DONE, C_LAST = range(7)
COMPUTATION_WIDTH = 7
# Columns of `shapes` and `opcodes`, the distinct ones. `attributes` of the header: where name and value begin and end.
SPAN, SPAN_END, SPAN_HASH = range(3)
SPAN_WIDTH = 3
# Columns of `stack`: what is being read around the present instruction.
KIND, IN_ROW, IN_COMPUTATION, IN_PIECE, IN_ROLE, IN_LIST = range(6)
STACK_WIDTH = 6
NESTED_INSTRUCTION, INLINE_COMPUTATION = 1, 2
MOST_NESTED = 200

# The state: the token (its kind, span, and the element after `#`), where the next one begins, where the text ends.
TOKEN, TOKEN_START, TOKEN_END, TOKEN_ELEMENT, POSITION, SIZE = range(6)
# What is being read, and what was met.
MODE, DEPTH, ROW, IN, PIECE, PIECE_END, ORDER, ERROR, ERROR_PLACE, BARE = range(6, 16)
MODULE_NAME, MODULE_NAME_END, FRAMES, FRAMES_END, JUNK, JUNK_LINES, UNCLOSED, HAS_ENTRY = range(16, 24)
DUPLICATES, UNRESOLVED, SHAPELESS, REORDERED, STACK_AT = range(24, 29)
# The tables, by the place of the count of their entries. At that place plus ROOM stands for how many there is room,
# plus AT where the table begins, plus SLOTS_AT where its hash slots begin, plus SLOT_MASK their number less one.
ROWS, OPERANDS, CALLS, PIECES, COMPUTATIONS, SHAPES, OPCODES, ATTRIBUTES = range(29, 37)
ROOM, AT, SLOTS_AT, SLOT_MASK = 8, 16, 24, 32
ROWS_AT, COMPUTATIONS_AT = ROWS + AT, COMPUTATIONS + AT
STATE_SIZE = 29 + 5 * 8
WIDTHS = np.array([ROW_WIDTH, 6, 4, 3, COMPUTATION_WIDTH, SPAN_WIDTH, SPAN_WIDTH, 4])

# Values of `TOKEN`: a kind, or the character itself. Words come without `%`; arrays have their layout with them.
END_OF_TEXT, WORD, ARRAY, ARROW = 0, 1, 2, 3

# Values of `MODE`.
TOP, BODY, IN_OPERANDS, IN_ATTRIBUTES, FINISHED = range(5)

# Values of `ERROR`; the messages stand with the reader.
OK, FULL, NO_COMPUTATION, SECOND_ENTRY, NOT_CLOSED, NO_INSTRUCTION, NO_EQUALS, BAD_SHAPE, NO_OPCODE = range(9)
BAD_PARAMETER, BAD_OPERAND, NO_COMMA, BAD_ATTRIBUTE, BAD_VALUE, NAME_TWICE = range(9, 15)
SECOND_ROOT, TOO_DEEP, BAD_CALL, BAD_METADATA, JUNK_INSIDE, BAD_LITERAL = range(15, 21)

ATTRIBUTE_NAMES = (*CALL_ROLES, "metadata", "backend_config")
"""The attributes that the scanner knows: those that call computations, in the order of CALL_ROLES, and two others."""
METADATA, BACKEND_CONFIG = len(CALL_ROLES), len(CALL_ROLES) + 1

WORDS = (
    *("HloModule", "ENTRY", "ROOT", "FileNames", "FunctionNames", "FileLocations", "StackFrames"),
    *("constant", "parameter", "op_name", "source_file", "source_line", "stack_frame_id"),
    *("inf", "true", "false", "nan"),
)
"""The words that mean something to the scanner."""
HLO_MODULE, ENTRY, ROOT, FILE_NAMES, FUNCTION_NAMES, FILE_LOCATIONS, STACK_FRAMES = range(7)
CONSTANT_WORD, PARAMETER_WORD, OP_NAME_WORD, FILE_WORD, LINE_WORD, FRAME_WORD = range(7, 13)
INF, NAN = 13, 16

MOST_UNCLOSED = 50
"""How many lines that are no HLO may open a parenthesis that is never closed; each costs a look through the text."""

NONE, NO, YES, SHAPE_ALONE = -1, 0, 1, -2
"""What an argument is called with; numba makes no version of its own for each, as it would for a number."""

_LARGEST_KEPT = 1 << 20
_kept: list[Ints] = []
"""Memory for the next scan, at most one and no large one: that its pages are there already saves time."""


def memory_for(room: int) -> Ints:
    """Memory for so many instructions, and as much of all else as they mostly have."""
    rooms = [room, 2 * room, room, room, 16 + room // 2, 16 + room // 2, 64 + room // 8, 64 + room // 8]
    slots = [1 << rooms[table].bit_length() if table + ROWS in (ROWS, SHAPES, OPCODES) else 0 for table in range(8)]
    sizes = [MOST_NESTED * STACK_WIDTH, *(WIDTHS * rooms), *slots]
    places = STATE_SIZE + np.cumsum([0, *sizes])
    memory = _memory(int(places[-1]))
    memory[:STATE_SIZE] = 0
    memory[[MODULE_NAME, FRAMES, JUNK]] = -1
    memory[STACK_AT] = places[0]
    memory[ROWS + ROOM : ROWS + AT] = rooms
    memory[ROWS + AT : ROWS + SLOTS_AT] = places[1:9]
    memory[ROWS + SLOTS_AT : ROWS + SLOT_MASK] = places[9:17]
    memory[ROWS + SLOT_MASK :][:8] = np.array(slots) - 1
    memory[places[9] :] = 0
    return memory


def _memory(size: int) -> Ints:
    if _kept and size <= len(_kept[0]):
        with contextlib.suppress(IndexError):  # another thread was faster
            return _kept.pop()[:size]
    return np.empty(size, np.int64)


def give_back(memory: Ints) -> None:
    """The memory is not used any more."""
    if len(memory) <= _LARGEST_KEPT:
        _kept[:] = [memory if memory.base is None else memory.base]


class Found:
    """The tables of a finished scan as arrays, one row a thing."""

    def __init__(self, memory: Ints) -> None:
        self.memory = memory
        self.state = memory[:STATE_SIZE]
        self.rows, self.operands, self.calls, self.pieces = (
            _table(memory, counter) for counter in (ROWS, OPERANDS, CALLS, PIECES)
        )
        self.computations, self.shapes, self.opcodes, self.attributes = (
            _table(memory, counter) for counter in (COMPUTATIONS, SHAPES, OPCODES, ATTRIBUTES)
        )


def _table(memory: Ints, counter: int) -> Ints:
    at, count, width = int(memory[counter + AT]), int(memory[counter]), int(WIDTHS[counter - ROWS])
    return memory[at : at + count * width].reshape(count, width)
