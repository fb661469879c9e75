"""Where instructions come from: the frame that made each, and its stack, from either form of metadata.

Newer HLO names a stack frame of the module's tables (`stack_frame_id`), older a `source_file` and `source_line`. Where
both are there the frame is taken, since the file stands for its innermost frame.

Much of what a model runs stands in libraries: the *user's* line is that of the innermost frame outside of installed
packages and Python's own library, and the innermost one where there is no such frame.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from hlotrace.hlo import _value_kernels
from hlotrace.hlo.fused_demand import ends_of_chains
from hlotrace.hlo.module import Frames

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hlotrace.hlo.module import HloModule

_LIBRARY = re.compile(r"(?:^|[/\\])(?:(?:site|dist)-packages|lib(?:64)?[/\\]python\d+\.\d+)[/\\]|^<frozen ")


@dataclass(frozen=True)
class Sources:
    """One row an instruction.

    Attributes:
        file, line: of the innermost frame; null where none was recorded.
        user_file, user_line: the user's, as above.
        stack: innermost first, as `file:line function`; null where there is no frame.
        place: of the user's line into `places`, -1 where there is no file or no line.
        places: the distinct `file:line`.
    """

    file: pa.StringArray
    line: pa.Int64Array
    user_file: pa.StringArray
    user_line: pa.Int64Array
    stack: pa.ListArray
    place: NDArray[np.int32]
    places: pa.StringArray


def is_library(file: str) -> bool:
    """Whether a file belongs to an installed package or to Python's own library."""
    return _LIBRARY.search(file) is not None


def sources(hlo: HloModule) -> Sources:
    """The sources of all instructions of `hlo`."""
    frames = hlo.frames or _NO_FRAMES
    frame, innermost, users = _locations(hlo.stack_frame, frames)
    recorded = hlo.source_file.dictionary_encode()
    names: list[str] = [*recorded.dictionary.to_pylist(), *frames.file_names]
    # What frames share is numbered once; what an instruction without one says itself stands behind it.
    alone = frame == 0
    innermost[alone] = users[alone] = np.arange(len(frames.locations), len(frames.locations) + alone.sum())
    of_recorded = recorded.indices.fill_null(-1).to_numpy(zero_copy_only=False)[alone]
    of_frames = np.where(frames.locations[:, 0] > 0, frames.locations[:, 0] - 1 + len(recorded.dictionary), -1)
    file = np.concatenate([of_frames, of_recorded])
    line = np.concatenate([frames.locations[:, 2], hlo.source_line[alone]])
    place, places = _number(file, line, names)

    def columns(at: NDArray[np.int64]) -> tuple[pa.StringArray, pa.Int64Array]:
        of_file = file[at]
        files = pa.array(names, pa.string()).take(pa.array(of_file, mask=(of_file < 0) | (of_file >= len(names))))
        return files, pa.array(line[at], mask=line[at] <= 0)

    return Sources(*columns(innermost), *columns(users), _stacks(frames, frame), place[users], places)


_NO_FRAMES = Frames((), (), np.empty((0, 6), np.int64), np.empty((0, 2), np.int64))


def _locations(
    stack_frame: NDArray[np.int32], frames: Frames
) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64]]:
    """For each instruction its frame, 0 where it has none, and the rows of the innermost and of the user's location."""
    frame = np.where((stack_frame > 0) & (stack_frame <= len(frames.stack)), stack_frame, 0)
    own = np.concatenate([[0], frames.stack[:, 0]])
    frame[~_is_location(frames, own[frame])] = 0
    return frame, own[frame] - 1, np.concatenate([[0], _users_locations(frames)])[frame] - 1


def _is_location(frames: Frames, location: NDArray[np.int64]) -> NDArray[np.bool_]:
    return (location > 0) & (location <= len(frames.locations))


def _users_locations(frames: Frames) -> NDArray[np.int64]:
    """For each frame the location of the user's line: its own, or that of the first caller outside of libraries."""
    location, parent = frames.stack[:, 0], frames.stack[:, 1] - 1
    is_users_file = np.array([False, *(not is_library(name) for name in frames.file_names)])
    file = np.concatenate([[0], frames.locations[:, 0]])[np.where(_is_location(frames, location), location, 0)]
    is_users = is_users_file[np.where((file > 0) & (file < len(is_users_file)), file, 0)]
    is_last = is_users | (parent < 0) | (parent >= len(parent))
    ends = ends_of_chains(np.where(is_last, np.arange(len(parent)), parent))
    return np.where(is_users[ends], location[ends], location)


def _number(
    file: NDArray[np.int64], line: NDArray[np.int64], names: list[str]
) -> tuple[NDArray[np.int32], pa.StringArray]:
    """Number the distinct pairs of file and line; -1 where one of them is missing."""
    known = (file >= 0) & (file < len(names)) & (line > 0)
    keys, inverse = np.unique(file[known] << 32 | line[known], return_inverse=True)
    texts = [f"{names[key >> 32]}:{key & 0xFFFFFFFF}" for key in keys.tolist()]
    number = {text: at for at, text in enumerate(dict.fromkeys(texts))}
    place = np.full(len(file), -1, np.int32)
    place[known] = np.array([number[text] for text in texts], np.int32)[inverse]
    return place, pa.array(list(number), pa.string())


def _stacks(frames: Frames, frame: NDArray[np.int32]) -> pa.ListArray:
    """For each instruction the texts of its frame and all that called it; null where it has none."""
    depths = np.zeros(len(frames.stack) + 1, np.int32)
    _value_kernels.stack_depths(frames.stack, depths)
    offsets = np.zeros(len(frame) + 1, np.int32)
    np.cumsum(depths[frame], out=offsets[1:])
    locations = np.empty(offsets[-1], np.int32)
    _value_kernels.follow_stacks(frame, frames.stack, offsets, locations)
    used = np.zeros(max(len(frames.locations), int(frames.stack[:, 0].max(initial=0))) + 1, bool)
    used[locations] = True
    texts = pa.array([_location(frames, location) for location in np.flatnonzero(used).tolist()], pa.string())
    row_of = np.cumsum(used, dtype=np.int32) - 1
    return pa.ListArray.from_arrays(
        pa.array(offsets), texts.take(pa.array(row_of[locations])), mask=pa.array(frame == 0)
    )


def _location(frames: Frames, location: int) -> str:
    if not 0 < location <= len(frames.locations):
        return "?"
    file, function, line = frames.locations[location - 1, :3].tolist()
    file_name = frames.file_names[file - 1] if 0 < file <= len(frames.file_names) else "?"
    name = frames.function_names[function - 1] if 0 < function <= len(frames.function_names) else "?"
    return f"{file_name}:{line} {name}"
