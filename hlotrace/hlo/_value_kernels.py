"""Loops over operands, fused members, frames and text: what values are, what is asked of them, what names them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hlotrace.native import inner, kernel

if TYPE_CHECKING:
    from hlotrace.native import Bytes, Floats, Ints, Ints32, Rows


@kernel
def operand_shapes(
    operand: Ints32, element: Ints32, shape: Ints32, child_start: Ints32, child: Ints32, out: Ints32
) -> int:
    """Fill `out` with the shape of each operand, of the element where it names one of a tuple; -1 where not known."""
    for edge in range(len(operand)):
        out[edge] = -1
        if operand[edge] < 0:
            continue
        of = shape[operand[edge]]
        if element[edge] >= 0:
            at = child_start[of] + element[edge]
            of = child[at] if at < child_start[of + 1] else -1
        out[edge] = of
    return 0


@inner
def _is_repeated(operand: Ints32, element: Ints32, first: int, edge: int) -> bool:
    """Whether an operand from `first` on, before `edge`, is the same value."""
    while first < edge and (operand[first] != operand[edge] or element[first] != element[edge]):
        first += 1
    return first < edge


@kernel
def sum_distinct(rows: Ints32, operand_start: Ints32, operand: Ints32, element: Ints32, size: Ints, out: Ints) -> int:
    """Fill `out` with the sizes of each row's operands, a repeated one counted once; -1 where one is not known."""
    for number in range(len(rows)):
        first = operand_start[rows[number]]
        out[number] = 0
        for edge in range(first, operand_start[rows[number] + 1]):
            if size[edge] < 0 or out[number] < 0:
                out[number] = -1
            elif not _is_repeated(operand, element, first, edge):
                out[number] += size[edge]
    return 0


@kernel
def reads(
    operand_start: Ints32, operand: Ints32, element: Ints32, needed: Floats, size: Floats, in_hbm: Floats, out: Floats
) -> int:
    """Fill `out` with the bytes that each row reads: of a distinct operand what its uses there need, at most the whole.

    Args:
        needed: of each operand the elements that are needed. size: the elements that it has.
        in_hbm: the bytes that it has in HBM, below 0 where not known.
    """
    for row in range(len(out)):
        first, last = operand_start[row], operand_start[row + 1]
        out[row] = 0
        for edge in range(first, last):
            if in_hbm[edge] < 0 or out[row] < 0:
                out[row] = -1
            elif in_hbm[edge] > 0 and not _is_repeated(operand, element, first, edge):
                need = needed[edge]
                for other in range(edge + 1, last):
                    if operand[other] == operand[edge] and element[other] == element[edge]:
                        need += needed[other]
                out[row] += in_hbm[edge] * min(need / max(size[edge], 1.0), 1.0)
    return 0


@kernel
def ask_back(
    order: Ints32,
    computation_start: Ints32,
    operand_start: Ints32,
    operand: Ints32,
    applied: Ints32,
    parameter: Ints32,
    size: Floats,
    result_size: Floats,
    fixed: Floats,
    proportional: Floats,
    touched: Floats,
) -> int:
    """Carry `touched`, what is asked of each row, from users to what they use, in the computations of `order`."""
    for computation in order:
        for row in range(computation_start[computation + 1] - 1, computation_start[computation] - 1, -1):
            asked = min(touched[row], result_size[row])
            if asked <= 0:
                continue
            for edge in range(operand_start[row], operand_start[row + 1]):
                if operand[edge] < 0:
                    continue
                need = fixed[edge] + proportional[edge] * asked
                if applied[row] >= 0:
                    inside = touched[parameter[edge]] if parameter[edge] >= 0 else size[edge]
                    # What is smaller than what is asked for is spread over it, and needed whole.
                    need = min(inside, max(asked, inside * asked / result_size[row]))
                touched[operand[edge]] += min(need, size[edge])
    return 0


@kernel
def collect_members(
    computation: Ints32,
    computation_start: Ints32,
    nested: Ints32,
    counted: Bytes,
    at: Ints32,
    end: Ints32,
    which: Ints32,
    rows: Ints32,
) -> int:
    """Fill `rows` with the counted rows of each computation, nested ones in their place; `which` says of which.

    Gives how many there are, which may be more than there is room for: those are not written. `at` and `end`, one a
    computation of the module, are room to work in.
    """
    length = 0
    for number in range(len(computation)):
        depth = 0
        at[0] = computation_start[computation[number]]
        end[0] = computation_start[computation[number] + 1]
        while depth >= 0:
            if at[depth] == end[depth]:
                depth -= 1
                continue
            row = at[depth]
            at[depth] += 1
            if counted[row]:
                if length < len(rows):
                    which[length] = number
                    rows[length] = row
                length += 1
            if nested[row] >= 0 and depth + 1 < len(at):
                depth += 1
                at[depth] = computation_start[nested[row]]
                end[depth] = computation_start[nested[row] + 1]
    return length


@kernel
def count_reads(
    rows: Ints32, operand_start: Ints32, operand: Ints32, origin: Ints32, last_reader: Ints32, out: Ints
) -> int:
    """Add to `out`, one a row, how many of `rows` use it; `last_reader`, -1 everywhere, is room to work in."""
    for row in rows:
        for edge in range(operand_start[row], operand_start[row + 1]):
            source = origin[operand[edge]] if operand[edge] >= 0 else -1
            if source >= 0 and last_reader[source] != row:
                last_reader[source] = row
                out[source] += 1
    return 0


@kernel
def distinct_codes(which: Ints32, code: Ints32, last_group: Ints32, counts: Ints32, out: Ints32) -> int:
    """Fill `out` with the distinct codes of each group, in order of appearance; `counts` with how many each has.

    `last_group`, one a code and -1 everywhere, is room to work in. Gives how many there are.
    """
    length = 0
    for at in range(len(code)):
        if code[at] >= 0 and last_group[code[at]] != which[at]:
            last_group[code[at]] = which[at]
            out[length] = code[at]
            length += 1
            counts[which[at]] += 1
    return length


@kernel
def stack_depths(stack: Rows, out: Ints32) -> int:
    """Fill `out`, one a frame after a first for none, with how many frames there are from it to the outermost."""
    for frame in range(1, len(stack) + 1):
        at, steps = frame, 0
        while 0 < at <= len(stack) and steps < len(stack):
            steps += 1
            at = stack[at - 1, 1] if stack[at - 1, 1] != at else 0
        out[frame] = steps
    return 0


@kernel
def follow_stacks(frame: Ints32, stack: Rows, offsets: Ints32, out: Ints32) -> int:
    """Fill `out` with the locations from each row's frame to the outermost, from `offsets` of the row on."""
    for row in range(len(frame)):
        at = frame[row]
        for place in range(offsets[row], offsets[row + 1]):
            out[place] = stack[at - 1, 0]
            at = stack[at - 1, 1]
    return 0


@kernel
def estimates(
    data: Bytes, bounds: Ints32, key: Bytes, bundles_key: Bytes, skip: Ints, model: Ints, bundles: Ints
) -> int:
    """Find the number after the first `key` of each row of text, and after the first in the object of `bundles_key`.

    Args:
        bounds: where each row begins in `data`, and after them where the last ends.
        skip: how far the search may go on when a byte stands where the key would end.
        model, bundles: filled where there is a number, left as they are where there is none.
    """
    length = len(key)
    for row in range(len(bounds) - 1):
        last, end = bounds[row] + length - 1, bounds[row + 1]
        while last < end:
            at = last - length + 1
            last += skip[data[last]]
            if not _stands(data, at, bounds[row], end, key):
                continue
            brace = _opening_brace(data, at, bounds[row])
            value = _integer(data, at + length, end)
            if _stands(data, brace - len(bundles_key), bounds[row], end, bundles_key):
                bundles[row] = value if bundles[row] < 0 else bundles[row]
            elif model[row] < 0:
                model[row] = value
    return 0


@inner
def _stands(data: Bytes, at: int, start: int, end: int, key: Bytes) -> bool:
    """Whether `key` stands at `at`, within the text from `start` to `end`."""
    if at < start or at + len(key) > end:
        return False
    step = 0
    while step < len(key) and data[at + step] == key[step]:
        step += 1
    return step == len(key)


@inner
def _opening_brace(data: Bytes, at: int, start: int) -> int:
    """Where the object that surrounds `at` opens; `start` where it does not."""
    depth = 1
    while at > start and depth > 0:
        at -= 1
        if data[at] == 123:
            depth -= 1
        elif data[at] == 125:
            depth += 1
    return at


@inner
def _integer(data: Bytes, at: int, end: int) -> int:
    """The digits at `at`, in quotation marks or not, at most 19 of them; -1 where there are none."""
    while at < end and (data[at] == 34 or data[at] == 32):
        at += 1
    value, digits = -1, 0
    while at < end and 48 <= data[at] <= 57 and digits < 19:
        value = max(value, 0) * 10 + (data[at] - 48)
        at += 1
        digits += 1
    return value


@kernel
def valid_positions(
    size: int, stride: int, low: int, lhs_dilate: int, rhs_dilate: int, lhs_size: int, output_size: int
) -> int:
    """Pairs of a window and an output position that meet an element of the lhs, along one dimension."""
    last = (lhs_size - 1) * lhs_dilate
    total = 0
    for position in range(size):
        offset = position * rhs_dilate - low
        first_output = max(0, -(offset // stride))
        last_output = min(output_size - 1, (last - offset) // stride)
        if lhs_dilate == 1 or stride % lhs_dilate == 0:
            if lhs_dilate == 1 or offset % lhs_dilate == 0:
                total += max(0, last_output - first_output + 1)
            continue
        for output in range(first_output, last_output + 1):
            if (output * stride + offset) % lhs_dilate == 0:
                total += 1
    return total
