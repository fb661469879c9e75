"""Attributes that number dimensions: windows, convolutions, dots, slices, gathers and scatters, as XLA prints them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from hlotrace.parsers._proto_text import ints
from hlotrace.parsers._wire import Message

Printer = Callable[[Message], list[str]]
"""What prints the attributes of one kind of instruction, given its HloInstructionProto."""


def list_of(key: str, number: int) -> Printer:
    """A printer of repeated integers."""
    return lambda instruction: [f"{key}={ints(instruction.integers(number))}"]


def _lists(message: Message, named: Iterable[tuple[int, str]], *, empty: bool = False) -> list[str]:
    """The named fields with repeated integers; `empty` ones too where XLA prints them."""
    return [f"{key}={ints(values)}" for number, key in named if (values := message.integers(number)) or empty]


def flag(instruction: Message, number: int, key: str) -> list[str]:
    """`key=true` where the field is set."""
    return [f"{key}=true"] if instruction.integer(number) else []


def window(instruction: Message) -> list[str]:
    """The `window={…}` of what has one; a custom call says that it is empty."""
    dims = list(instruction.message(15).messages(1))
    if not dims:
        return ["window={}"] if 15 in instruction and instruction.text(2) == "custom-call" else []
    parts = ["size=" + "x".join(str(dim.integer(1)) for dim in dims)]
    for key, number, default in (("stride", 2, 1), ("lhs_dilate", 6, 1), ("rhs_dilate", 5, 1), ("rhs_reversal", 7, 0)):
        values = [dim.integer(number) for dim in dims]
        if any(value != default for value in values):
            parts.append(f"{key}=" + "x".join(map(str, values)))
    if any(dim.integer(3) or dim.integer(4) for dim in dims):
        padding = "pad=" + "x".join(f"{dim.integer(3)}_{dim.integer(4)}" for dim in dims)
        parts.insert(1 + any(dim.integer(2) != 1 for dim in dims), padding)
    return [f"window={{{' '.join(parts)}}}"]


def dim_labels(instruction: Message) -> list[str]:
    """The `dim_labels=…` of a convolution."""
    if 16 not in instruction:
        return []
    numbers = instruction.message(16)

    def labels(first: tuple[int, str], second: tuple[int, str], spatial: int) -> str:
        places = {numbers.integer(first[0]): first[1], numbers.integer(second[0]): second[1]}
        places |= {dim: str(at) for at, dim in enumerate(numbers.integers(spatial))}
        return "".join(places.get(at, "?") for at in range(max(places) + 1))

    lhs = labels((7, "b"), (8, "f"), 11)
    rhs = labels((3, "i"), (4, "o"), 6)
    out = labels((9, "b"), (10, "f"), 12)
    return [f"dim_labels={lhs}_{rhs}->{out}"]


def group_counts(instruction: Message) -> list[str]:
    """How many groups of features and batches a convolution has, where more than one."""
    named = ((50, "feature_group_count"), (58, "batch_group_count"))
    return [f"{key}={instruction.integer(n)}" for n, key in named if instruction.integer(n, 1) not in (0, 1)]


_PRECISIONS = ("default", "high", "highest")


def precision(instruction: Message) -> list[str]:
    """The precision of the operands, where one is not the default."""
    operands = instruction.message(51).integers(1)
    parts = []
    if any(operands):
        names = (_PRECISIONS[value] if 0 <= value < 3 else str(value) for value in operands)
        parts.append(f"operand_precision={{{','.join(names)}}}")
    return parts


_ALGORITHMS = (
    "unset",
    "any_f8_any_f8_f32",
    "any_f8_any_f8_f32_fast_accum",
    "f16_f16_f16",
    "f16_f16_f32",
    "bf16_bf16_bf16",
    "bf16_bf16_f32",
    "bf16_bf16_f32_x3",
    "bf16_bf16_f32_x6",
    "tf32_tf32_f32",
    "tf32_tf32_f32_x3",
    "f32_f32_f32",
    "f64_f64_f64",
    "bf16_bf16_f32_x9",
    "bf16_bf16_fp8x3",
    "bf16_bf16_fp8x4",
)


def _algorithm(instruction: Message) -> list[str]:
    number = instruction.message(51).integer(2)
    if not number:
        return []
    name = _ALGORITHMS[number] if 0 < number < len(_ALGORITHMS) else str(number)
    return [f"algorithm=dot_{name}"]


_CONVOLUTION_KINDS = ("unset", "fprop", "dgrad", "wgrad")


def convolution(instruction: Message) -> list[str]:
    """A convolution."""
    parts = window(instruction) + dim_labels(instruction) + group_counts(instruction)
    parts += precision(instruction) + _sparsity(instruction)
    if kind := instruction.integer(97):
        parts.append(f"convolution_kind={_CONVOLUTION_KINDS[kind] if 0 < kind < 4 else kind}")
    return parts


def _sparsity(instruction: Message) -> list[str]:
    config = instruction.message(98)
    sides = []
    for number, key in ((1, "lhs"), (2, "rhs")):
        if number in config:
            side = config.message(number)
            sides.append(
                f"{key}={{sparsity={side.integer(1)}x{side.integer(2)} dimension={side.integer(3)} "
                f"stride={side.integer(4)} idx={side.integer(5)}}}"
            )
    return [f"sparsity_config={{{', '.join(sides)}}}"] if sides else []


def _dot_numbers(numbers: Message) -> list[str]:
    named = ((3, "lhs_batch_dims"), (1, "lhs_contracting_dims"), (4, "rhs_batch_dims"), (2, "rhs_contracting_dims"))
    always = ("lhs_contracting_dims", "rhs_contracting_dims")
    return [f"{key}={ints(numbers.integers(n))}" for n, key in named if numbers.integers(n) or key in always]


def dot(instruction: Message) -> list[str]:
    """A dot, scaled or not."""
    parts = _dot_numbers(instruction.message(30)) + precision(instruction) + _algorithm(instruction)
    return parts + _sparsity(instruction)


def ragged_dot(instruction: Message) -> list[str]:
    """A ragged dot."""
    numbers = instruction.message(90)
    parts = _dot_numbers(numbers.message(1))
    parts += _lists(numbers, ((2, "lhs_ragged_dims"), (3, "rhs_group_dims")))
    return parts + precision(instruction) + _algorithm(instruction)


def slice_dimensions(instruction: Message) -> list[str]:
    """The ranges of a slice."""
    dims = [(dim.integer(1), dim.integer(2), dim.integer(3)) for dim in instruction.messages(17)]
    strided = any(stride != 1 for _, _, stride in dims)
    ranges = ", ".join(f"[{low}:{high}:{stride}]" if strided else f"[{low}:{high}]" for low, high, stride in dims)
    return [f"slice={{{ranges}}}"]


def pad(instruction: Message) -> list[str]:
    """The padding of a pad."""
    dims = [(dim.integer(1), dim.integer(2), dim.integer(3)) for dim in instruction.message(21).messages(1)]
    inner = any(interior for _, _, interior in dims)
    return ["padding=" + "x".join(f"{low}_{high}_{mid}" if inner else f"{low}_{high}" for low, high, mid in dims)]


def gather(instruction: Message) -> list[str]:
    """A gather."""
    numbers = instruction.message(33)
    named = ((1, "offset_dims"), (2, "collapsed_slice_dims"), (3, "start_index_map"))
    parts = _lists(numbers, named, empty=True)
    batching = ((5, "operand_batching_dims"), (6, "start_indices_batching_dims"))
    parts += _lists(numbers, batching)
    parts.append(f"index_vector_dim={numbers.integer(4)}")
    parts.append(f"slice_sizes={ints(instruction.integers(34))}")
    return parts + flag(instruction, 67, "indices_are_sorted")


def scatter(instruction: Message) -> list[str]:
    """A scatter."""
    numbers = instruction.message(48)
    named = ((1, "update_window_dims"), (2, "inserted_window_dims"), (3, "scatter_dims_to_operand_dims"))
    parts = _lists(numbers, named, empty=True)
    batching = ((5, "input_batching_dims"), (6, "scatter_indices_batching_dims"))
    parts += _lists(numbers, batching)
    parts.append(f"index_vector_dim={numbers.integer(4)}")
    return parts + flag(instruction, 67, "indices_are_sorted") + flag(instruction, 69, "unique_indices")
