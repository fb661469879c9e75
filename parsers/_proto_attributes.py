"""The attributes of an HloInstructionProto as the text that XLA prints after an instruction's operands."""

from __future__ import annotations

from collections.abc import Mapping

from hlotrace.parsers._proto_dimensions import (
    Printer,
    convolution,
    dim_labels,
    dot,
    flag,
    gather,
    group_counts,
    list_of,
    pad,
    precision,
    ragged_dot,
    scatter,
    slice_dimensions,
    window,
)
from hlotrace.parsers._proto_literal import float_text, literal_text
from hlotrace.parsers._proto_shape import shape_text
from hlotrace.parsers._proto_sharding import escape, is_braced, replica_groups_text, sharding_text
from hlotrace.parsers._proto_text import ints
from hlotrace.parsers._wire import Message


def attribute_texts(instruction: Message, opcode: str) -> tuple[list[str], list[str], list[str]]:
    """Its attributes as `key=value`, in XLA's order, without metadata and backend_config.

    Returns:
        Those that stand before what it calls, those between that and its control predecessors, and the rest.
    """
    printer = _PRINTERS.get(opcode)
    head = [*(printer(instruction) if printer else []), *_accuracy(instruction)]
    middle = flag(instruction, 89, "is_composite")
    if 40 in instruction:
        middle.append(f"sharding={sharding_text(instruction.message(40))}")
    if attributes := frontend_attributes_text(instruction.message(68)):
        middle.append(f"frontend_attributes={attributes}")
    tail = _statistics(instruction.message(82)) if 82 in instruction else []
    if 88 in instruction:
        tail += _origin(instruction)
    return head, middle, tail


def frontend_attributes_text(attributes: Message) -> str:
    """A FrontendAttributes map as text, braces included; empty when there are none."""
    pairs = sorted(attributes.string_map(1).items())
    if not pairs:
        return ""
    return "{" + ",".join(f"{key}={_frontend_value(value)}" for key, value in pairs) + "}"


def _frontend_value(value: str) -> str:
    return value if is_braced(value) else f'"{escape(value)}"'


_dimensions = list_of("dimensions", 14)


def _compare(instruction: Message) -> list[str]:
    return [f"direction={instruction.text(63)}"]


def comparison_kind(older: str, newer: str, dtype: str) -> list[str]:
    """What a comparison says of its order where it is not the usual one of the operands' element type.

    Args:
        older: `comparison_type`, such as `TOTALORDER`. newer: `comparison_order`.
    """
    is_float = dtype.startswith(("f", "bf", "c"))
    usual = "FLOAT" if is_float else "SIGNED" if dtype.startswith("s") else "UNSIGNED"
    if older and older != usual:
        return [f"type={older}"]
    return ["order=TOTAL"] if newer == "TOTAL" and is_float else []


def _sort(instruction: Message) -> list[str]:
    return _dimensions(instruction) + flag(instruction, 60, "is_stable")


def _topk(instruction: Message) -> list[str]:
    parts = [f"k={instruction.integer(81)}", f"largest={_bool(instruction.integer(85))}"]
    return parts + flag(instruction, 60, "is_stable")


def _bool(value: int) -> str:
    return "true" if value else "false"


def _channel(instruction: Message) -> list[str]:
    channel = instruction.integer(26)
    return [f"channel_id={channel}"] if channel > 0 else []


def _host_transfer(instruction: Message) -> list[str]:
    return _channel(instruction) + flag(instruction, 47, "is_host_transfer")


def _collective(instruction: Message) -> list[str]:
    parts = [*_channel(instruction), f"replica_groups={replica_groups_text(instruction)}"]
    return parts + flag(instruction, 56, "constrain_layout") + flag(instruction, 71, "use_global_device_ids")


def _reduce_scatter(instruction: Message) -> list[str]:
    return _collective(instruction) + _dimensions(instruction)


def _gathering(instruction: Message) -> list[str]:
    parts = [*_channel(instruction), f"replica_groups={replica_groups_text(instruction)}"]
    parts += flag(instruction, 56, "constrain_layout")
    if instruction.integers(14):
        parts += _dimensions(instruction)
    return parts + flag(instruction, 71, "use_global_device_ids")


def _broadcasting(instruction: Message) -> list[str]:
    parts = _collective(instruction)
    if 100 in instruction:
        parts.append(f"has_dynamic_root={_bool(instruction.integer(100))}")
    return parts


def _permute(instruction: Message) -> list[str]:
    pairs = ",".join(f"{{{pair.integer(1)},{pair.integer(2)}}}" for pair in instruction.messages(52))
    parts = [*_channel(instruction), f"source_target_pairs={{{pairs}}}"]
    sizes = instruction.integers(20)
    rank = _rank(instruction.message(3)) or len(sizes)
    slices = ",".join(ints(sizes[at : at + rank]) for at in range(0, len(sizes), rank)) if sizes else ""
    return parts + ([f"slice_sizes={{{slices}}}"] if slices else [])


def _rank(shape: Message) -> int:
    """The dimensions of a shape's first array."""
    while shape.integer(2) == 13:
        shape = next(shape.messages(4), Message(b"", ""))
    return len(shape.integers(3))


def _custom_call(instruction: Message) -> list[str]:
    parts = window(instruction) + dim_labels(instruction) + group_counts(instruction) + precision(instruction)
    if padding := instruction.integer(75):
        parts.append(f"padding_type={('', 'PADDING_VALID', 'PADDING_SAME')[padding] if padding < 3 else padding}")
    parts.append(f'custom_call_target="{escape(instruction.text(28))}"')
    if instruction.integer(56):
        shapes = ", ".join(shape_text(shape) for shape in instruction.messages(57))
        parts.append(f"operand_layout_constraints={{{shapes}}}")
    parts += flag(instruction, 65, "custom_call_has_side_effect")
    if 8 in instruction:
        literal = instruction.message(8)
        parts.append(f"literal={shape_text(literal.message(1))} {literal_text(literal)}")
    parts += _aliasing(instruction)
    if schedule := instruction.integer(76):
        parts.append(f"schedule={_SCHEDULES[schedule] if schedule < len(_SCHEDULES) else schedule}")
    if (version := instruction.integer(77)) > 1:
        parts.append(f"api_version={_API_VERSIONS[version] if version < len(_API_VERSIONS) else version}")
    return parts


_SCHEDULES = ("SCHEDULE_NONE", "SCHEDULE_LATEST", "SCHEDULE_EARLIEST")
_API_VERSIONS = (
    "API_VERSION_UNSPECIFIED",
    "API_VERSION_ORIGINAL",
    "API_VERSION_STATUS_RETURNING",
    "API_VERSION_STATUS_RETURNING_UNIFIED",
    "API_VERSION_TYPED_FFI",
)


def _aliasing(instruction: Message) -> list[str]:
    pairs = [
        f"{ints(pair.integers(1))}: ({pair.integer(2)}, {ints(pair.integers(3))})" for pair in instruction.messages(74)
    ]
    return [f"output_to_operand_aliasing={{{', '.join(pairs)}}}"] if pairs else []


def _fusion(instruction: Message) -> list[str]:
    return [f"kind={instruction.text(11)}", *_aliasing(instruction)]


def _async(instruction: Message) -> list[str]:
    thread = instruction.text(79)
    return [f'async_execution_thread="{escape(thread)}"'] if thread not in ("", "main") else []


def _scan(instruction: Message) -> list[str]:
    parts = [*_dimensions(instruction), f"num_carries={instruction.integer(95)}"]
    parts += flag(instruction, 94, "is_reverse")
    if associative := instruction.integer(96):
        parts.append(f"is_associative={_bool(associative == 1)}")
    return parts


_TRANSPOSES = ("TRANSPOSE_INVALID", "NO_TRANSPOSE", "TRANSPOSE", "ADJOINT")


def _triangular_solve(instruction: Message) -> list[str]:
    options = instruction.message(59)
    parts = flag(options, 1, "left_side") + flag(options, 2, "lower") + flag(options, 3, "unit_diagonal")
    return [*parts, f"transpose_a={_TRANSPOSES[options.integer(4) % 4]}"]


def _batch_norm(instruction: Message) -> list[str]:
    return [f"epsilon={float_text(instruction.float(24), 'f32')}", f"feature_index={instruction.integer(25)}"]


_FFT_TYPES = ("FFT", "IFFT", "RFFT", "IRFFT")


def _fft(instruction: Message) -> list[str]:
    return [f"fft_type={_FFT_TYPES[instruction.integer(31) % 4]}", f"fft_length={ints(instruction.integers(32))}"]


def _reshape(instruction: Message) -> list[str]:
    dims = instruction.integers(14)
    return [f"inferred_dimension={dims[0]}"] if dims else []


def _outfeed(instruction: Message) -> list[str]:
    parts = [f"outfeed_shape={shape_text(instruction.message(29))}"]
    config = instruction.text(22)
    return [*parts, f'outfeed_config="{escape(config)}"'] if config else parts


def _infeed(instruction: Message) -> list[str]:
    config = instruction.text(27)
    return [f'infeed_config="{escape(config)}"'] if config else []


def _domain(instruction: Message) -> list[str]:
    entry, leave = (sharding_text(instruction.message(n)) if n in instruction else "{}" for n in (55, 54))
    return [f'domain={{kind="sharding", entry={entry}, exit={leave}}}']


def _parameter(instruction: Message) -> list[str]:
    flags = instruction.message(61).integers(1)
    return [f"parameter_replication={{{','.join(map(_bool, flags))}}}"] if flags else []


def _copy_start(instruction: Message) -> list[str]:
    return [f"cross_program_prefetch_index={instruction.integer(80)}"] if 80 in instruction else []


def _reduce_precision(instruction: Message) -> list[str]:
    return [f"exponent_bits={instruction.integer(18)}", f"mantissa_bits={instruction.integer(19)}"]


def _rng(instruction: Message) -> list[str]:
    names = ("rng_invalid", "rng_uniform", "rng_normal")
    return [f"distribution={names[instruction.integer(23) % 3]}"]


def _rng_bits(instruction: Message) -> list[str]:
    names = ("rng_default", "rng_three_fry", "rng_philox")
    return [f"algorithm={names[instruction.integer(70) % 3]}"]


def _accuracy(instruction: Message) -> list[str]:
    accuracy = instruction.message(91)
    if 2 in accuracy:
        limits = accuracy.message(2)
        atol, rtol = (float_text(limits.double(n), "f64") for n in (1, 2))
        return [f"result_accuracy={{tolerance={{atol={atol},rtol={rtol},ulps={limits.integer(3)}}}}}"]
    return ["result_accuracy={mode=highest}"] if accuracy.integer(1) == 1 else []


def _statistics(viz: Message) -> list[str]:
    stats = [f"{stat.text(1)}={float_text(stat.double(2), 'f64')}" for stat in viz.messages(2)]
    return [f"statistics={{visualizing_index={viz.integer(1)},{','.join(stats)}}}"] if stats else []


def _origin(instruction: Message) -> list[str]:
    """An OriginalValueProto: the arrays of the unoptimised program, nested as the result's shape is."""
    value = instruction.message(88)
    if value.integer(2):
        return [f'origin={{(),["{escape(value.text(3))}"]}}']
    held: dict[tuple[int, ...], str] = {}
    for element in value.messages(1):
        array = element.message(2)
        index = array.integers(2)
        name = f'"{array.text(1)}"' + (" " + ints(index) if index else "")
        held[tuple(element.integers(1))] = "{" + name + "}" if 2 in element else "{}"
    return [f"origin={{{_nested(held, instruction.message(3), ())}}}"]


def _nested(held: Mapping[tuple[int, ...], str], shape: Message, index: tuple[int, ...]) -> str:
    if shape.integer(2) != 13:
        return held.get(index, "{}")
    parts = (_nested(held, part, (*index, at)) for at, part in enumerate(shape.messages(4)))
    return "(" + ", ".join(parts) + ")"


_PRINTERS: dict[str, Printer] = {
    "all-gather": _gathering,
    "all-gather-start": _gathering,
    "all-reduce": _collective,
    "all-reduce-start": _collective,
    "all-to-all": _gathering,
    "async-done": _async,
    "async-start": _async,
    "async-update": _async,
    "batch-norm-grad": _batch_norm,
    "batch-norm-inference": _batch_norm,
    "batch-norm-training": _batch_norm,
    "broadcast": _dimensions,
    "cholesky": lambda instruction: flag(instruction.message(62), 1, "lower"),
    "collective-broadcast": _broadcasting,
    "collective-permute": _permute,
    "collective-permute-start": _permute,
    "compare": _compare,
    "concatenate": _dimensions,
    "convolution": convolution,
    "copy-start": _copy_start,
    "custom-call": _custom_call,
    "domain": _domain,
    "dot": dot,
    "dynamic-slice": list_of("dynamic_slice_sizes", 20),
    "fft": _fft,
    "fusion": _fusion,
    "gather": gather,
    "get-dimension-size": _dimensions,
    "get-tuple-element": lambda instruction: [f"index={instruction.integer(13)}"],
    "infeed": _infeed,
    "iota": lambda instruction: [f"iota_dimension={(instruction.integers(14) or [0])[0]}"],
    "map": _dimensions,
    "outfeed": _outfeed,
    "pad": pad,
    "parameter": _parameter,
    "ragged-all-to-all": _collective,
    "ragged-dot": ragged_dot,
    "recv": _host_transfer,
    "recv-done": _host_transfer,
    "reduce": _dimensions,
    "reduce-precision": _reduce_precision,
    "reduce-scatter": _reduce_scatter,
    "reduce-window": window,
    "reshape": _reshape,
    "reverse": _dimensions,
    "rng": _rng,
    "rng-bit-generator": _rng_bits,
    "rng-get-and-update-state": lambda instruction: [f"delta={instruction.integer(66)}"],
    "scaled-dot": dot,
    "scan": _scan,
    "scatter": scatter,
    "select-and-scatter": window,
    "send": _host_transfer,
    "send-done": _host_transfer,
    "set-dimension-size": _dimensions,
    "slice": slice_dimensions,
    "sort": _sort,
    "topk": _topk,
    "transpose": _dimensions,
    "triangular-solve": _triangular_solve,
}
