"""The attributes of an HloInstructionProto as the text that XLA prints after an instruction's operands."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from hlotrace.parsers._proto_literal import float_text, literal_text
from hlotrace.parsers._proto_shape import shape_text
from hlotrace.parsers._proto_sharding import escape, is_braced, replica_groups_text, sharding_text
from hlotrace.parsers._wire import Message

_Printer = Callable[[Message], list[str]]


def attribute_texts(instruction: Message, opcode: str) -> tuple[list[str], list[str], list[str]]:
    """Its attributes as `key=value`, in XLA's order, without metadata and backend_config.

    Returns:
        Those that stand before what it calls, those between that and its control predecessors, and the rest.
    """
    printer = _PRINTERS.get(opcode)
    head = [*(printer(instruction) if printer else []), *_accuracy(instruction)]
    middle = _flag(instruction, 89, "is_composite")
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


def _ints(values: list[int]) -> str:
    return "{" + ",".join(map(str, values)) + "}"


def _list(key: str, number: int) -> _Printer:
    return lambda instruction: [f"{key}={_ints(instruction.integers(number))}"]


def _flag(instruction: Message, number: int, key: str) -> list[str]:
    return [f"{key}=true"] if instruction.integer(number) else []


_dimensions = _list("dimensions", 14)


def _window(instruction: Message) -> list[str]:
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


def _dim_labels(instruction: Message) -> list[str]:
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


def _group_counts(instruction: Message) -> list[str]:
    named = ((50, "feature_group_count"), (58, "batch_group_count"))
    return [f"{key}={instruction.integer(n)}" for n, key in named if instruction.integer(n, 1) not in (0, 1)]


_PRECISIONS = ("default", "high", "highest")


def _precision(instruction: Message) -> list[str]:
    precision = instruction.message(51)
    operands = precision.integers(1)
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


def _convolution(instruction: Message) -> list[str]:
    parts = _window(instruction) + _dim_labels(instruction) + _group_counts(instruction)
    parts += _precision(instruction) + _sparsity(instruction)
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
    return [f"{key}={_ints(numbers.integers(n))}" for n, key in named if numbers.integers(n) or key in always]


def _dot(instruction: Message) -> list[str]:
    parts = _dot_numbers(instruction.message(30)) + _precision(instruction) + _algorithm(instruction)
    return parts + _sparsity(instruction)


def _ragged_dot(instruction: Message) -> list[str]:
    numbers = instruction.message(90)
    parts = _dot_numbers(numbers.message(1))
    named = ((2, "lhs_ragged_dims"), (3, "rhs_group_dims"))
    parts += [f"{key}={_ints(numbers.integers(n))}" for n, key in named if numbers.integers(n)]
    return parts + _precision(instruction) + _algorithm(instruction)


def _slice(instruction: Message) -> list[str]:
    dims = [(dim.integer(1), dim.integer(2), dim.integer(3)) for dim in instruction.messages(17)]
    strided = any(stride != 1 for _, _, stride in dims)
    ranges = ", ".join(f"[{low}:{high}:{stride}]" if strided else f"[{low}:{high}]" for low, high, stride in dims)
    return [f"slice={{{ranges}}}"]


def _pad(instruction: Message) -> list[str]:
    dims = [(dim.integer(1), dim.integer(2), dim.integer(3)) for dim in instruction.message(21).messages(1)]
    inner = any(interior for _, _, interior in dims)
    return ["padding=" + "x".join(f"{low}_{high}_{mid}" if inner else f"{low}_{high}" for low, high, mid in dims)]


def _gather(instruction: Message) -> list[str]:
    numbers = instruction.message(33)
    named = ((1, "offset_dims"), (2, "collapsed_slice_dims"), (3, "start_index_map"))
    parts = [f"{key}={_ints(numbers.integers(n))}" for n, key in named]
    batching = ((5, "operand_batching_dims"), (6, "start_indices_batching_dims"))
    parts += [f"{key}={_ints(numbers.integers(n))}" for n, key in batching if numbers.integers(n)]
    parts.append(f"index_vector_dim={numbers.integer(4)}")
    parts.append(f"slice_sizes={_ints(instruction.integers(34))}")
    return parts + _flag(instruction, 67, "indices_are_sorted")


def _scatter(instruction: Message) -> list[str]:
    numbers = instruction.message(48)
    named = ((1, "update_window_dims"), (2, "inserted_window_dims"), (3, "scatter_dims_to_operand_dims"))
    parts = [f"{key}={_ints(numbers.integers(n))}" for n, key in named]
    batching = ((5, "input_batching_dims"), (6, "scatter_indices_batching_dims"))
    parts += [f"{key}={_ints(numbers.integers(n))}" for n, key in batching if numbers.integers(n)]
    parts.append(f"index_vector_dim={numbers.integer(4)}")
    return parts + _flag(instruction, 67, "indices_are_sorted") + _flag(instruction, 69, "unique_indices")


def _compare(instruction: Message) -> list[str]:
    """The order of floats is said where it is total; older XLA calls that `type=TOTALORDER`."""
    parts = [f"direction={instruction.text(63)}"]
    return parts + (["type=TOTALORDER"] if instruction.text(72) == "TOTALORDER" else [])


def _sort(instruction: Message) -> list[str]:
    return _dimensions(instruction) + _flag(instruction, 60, "is_stable")


def _topk(instruction: Message) -> list[str]:
    parts = [f"k={instruction.integer(81)}", f"largest={_bool(instruction.integer(85))}"]
    return parts + _flag(instruction, 60, "is_stable")


def _bool(value: int) -> str:
    return "true" if value else "false"


def _channel(instruction: Message) -> list[str]:
    channel = instruction.integer(26)
    return [f"channel_id={channel}"] if channel > 0 else []


def _host_transfer(instruction: Message) -> list[str]:
    return _channel(instruction) + _flag(instruction, 47, "is_host_transfer")


def _collective(instruction: Message) -> list[str]:
    parts = [*_channel(instruction), f"replica_groups={replica_groups_text(instruction)}"]
    return parts + _flag(instruction, 56, "constrain_layout") + _flag(instruction, 71, "use_global_device_ids")


def _reduce_scatter(instruction: Message) -> list[str]:
    return _collective(instruction) + _dimensions(instruction)


def _gathering(instruction: Message) -> list[str]:
    parts = [*_channel(instruction), f"replica_groups={replica_groups_text(instruction)}"]
    parts += _flag(instruction, 56, "constrain_layout")
    if instruction.integers(14):
        parts += _dimensions(instruction)
    return parts + _flag(instruction, 71, "use_global_device_ids")


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
    slices = ",".join(_ints(sizes[at : at + rank]) for at in range(0, len(sizes), rank)) if sizes else ""
    return parts + ([f"slice_sizes={{{slices}}}"] if slices else [])


def _rank(shape: Message) -> int:
    """The dimensions of a shape's first array."""
    while shape.integer(2) == 13:
        shape = next(shape.messages(4), Message(b"", ""))
    return len(shape.integers(3))


def _custom_call(instruction: Message) -> list[str]:
    parts = _window(instruction) + _dim_labels(instruction) + _group_counts(instruction) + _precision(instruction)
    if padding := instruction.integer(75):
        parts.append(f"padding_type={('', 'PADDING_VALID', 'PADDING_SAME')[padding] if padding < 3 else padding}")
    parts.append(f'custom_call_target="{escape(instruction.text(28))}"')
    if instruction.integer(56):
        shapes = ", ".join(shape_text(shape) for shape in instruction.messages(57))
        parts.append(f"operand_layout_constraints={{{shapes}}}")
    parts += _flag(instruction, 65, "custom_call_has_side_effect")
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
        f"{_index(pair.integers(1))}: ({pair.integer(2)}, {_index(pair.integers(3))})"
        for pair in instruction.messages(74)
    ]
    return [f"output_to_operand_aliasing={{{', '.join(pairs)}}}"] if pairs else []


def _index(values: list[int]) -> str:
    return "{" + ",".join(map(str, values)) + "}"


def _fusion(instruction: Message) -> list[str]:
    return [f"kind={instruction.text(11)}", *_aliasing(instruction)]


def _async(instruction: Message) -> list[str]:
    thread = instruction.text(79)
    return [f'async_execution_thread="{escape(thread)}"'] if thread not in ("", "main") else []


def _scan(instruction: Message) -> list[str]:
    parts = [*_dimensions(instruction), f"num_carries={instruction.integer(95)}"]
    parts += _flag(instruction, 94, "is_reverse")
    if associative := instruction.integer(96):
        parts.append(f"is_associative={_bool(associative == 1)}")
    return parts


_TRANSPOSES = ("TRANSPOSE_INVALID", "NO_TRANSPOSE", "TRANSPOSE", "ADJOINT")


def _triangular_solve(instruction: Message) -> list[str]:
    options = instruction.message(59)
    parts = _flag(options, 1, "left_side") + _flag(options, 2, "lower") + _flag(options, 3, "unit_diagonal")
    return [*parts, f"transpose_a={_TRANSPOSES[options.integer(4) % 4]}"]


def _batch_norm(instruction: Message) -> list[str]:
    return [f"epsilon={float_text(instruction.float(24), 'f32')}", f"feature_index={instruction.integer(25)}"]


_FFT_TYPES = ("FFT", "IFFT", "RFFT", "IRFFT")


def _fft(instruction: Message) -> list[str]:
    return [f"fft_type={_FFT_TYPES[instruction.integer(31) % 4]}", f"fft_length={_ints(instruction.integers(32))}"]


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
        name = f'"{array.text(1)}"' + (" " + _index(index) if index else "")
        held[tuple(element.integers(1))] = "{" + name + "}" if 2 in element else "{}"
    return [f"origin={{{_nested(held, instruction.message(3), ())}}}"]


def _nested(held: Mapping[tuple[int, ...], str], shape: Message, index: tuple[int, ...]) -> str:
    if shape.integer(2) != 13:
        return held.get(index, "{}")
    parts = (_nested(held, part, (*index, at)) for at, part in enumerate(shape.messages(4)))
    return "(" + ", ".join(parts) + ")"


_PRINTERS: dict[str, _Printer] = {
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
    "cholesky": lambda instruction: _flag(instruction.message(62), 1, "lower"),
    "collective-broadcast": _broadcasting,
    "collective-permute": _permute,
    "collective-permute-start": _permute,
    "compare": _compare,
    "concatenate": _dimensions,
    "convolution": _convolution,
    "copy-start": _copy_start,
    "custom-call": _custom_call,
    "domain": _domain,
    "dot": _dot,
    "dynamic-slice": _list("dynamic_slice_sizes", 20),
    "fft": _fft,
    "fusion": _fusion,
    "gather": _gather,
    "get-dimension-size": _dimensions,
    "get-tuple-element": lambda instruction: [f"index={instruction.integer(13)}"],
    "infeed": _infeed,
    "iota": lambda instruction: [f"iota_dimension={(instruction.integers(14) or [0])[0]}"],
    "map": _dimensions,
    "outfeed": _outfeed,
    "pad": _pad,
    "parameter": _parameter,
    "ragged-all-to-all": _collective,
    "ragged-dot": _ragged_dot,
    "recv": _host_transfer,
    "recv-done": _host_transfer,
    "reduce": _dimensions,
    "reduce-precision": _reduce_precision,
    "reduce-scatter": _reduce_scatter,
    "reduce-window": _window,
    "reshape": _reshape,
    "reverse": _dimensions,
    "rng": _rng,
    "rng-bit-generator": _rng_bits,
    "rng-get-and-update-state": lambda instruction: [f"delta={instruction.integer(66)}"],
    "scaled-dot": _dot,
    "scan": _scan,
    "scatter": _scatter,
    "select-and-scatter": _window,
    "send": _host_transfer,
    "send-done": _host_transfer,
    "set-dimension-size": _dimensions,
    "slice": _slice,
    "sort": _sort,
    "topk": _topk,
    "transpose": _dimensions,
    "triangular-solve": _triangular_solve,
}
