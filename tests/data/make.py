"""Make the small real dumps that tests read: one program compiled for this CPU and, compile-only, for a TPU v5e.

    python tests/data/make.py        # needs jax and libtpu

The program scans over two layers, so that the dumps hold a loop, fusions, matrix products and a reduction.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

os.environ |= {"JAX_PLATFORMS": "cpu", "TPU_SKIP_MDS_QUERY": "1", "ALLOW_MULTIPLE_LIBTPU_LOAD": "1"}

import jax
import jax.numpy as jnp
from jax.experimental import topologies
from jax.sharding import SingleDeviceSharding

HERE = Path(__file__).parent
KEPT = ("optimizations", "after_codegen", "target_arguments", "basic_compiler_metadata")
DROPPED = ("_buffer_assignment.", "report.pb", "after_codegen.hlo.pb", "before_optimizations.hlo.pb")


def layer(x, weights):
    up, down = weights
    hidden = jax.nn.relu(x @ up)
    return x + hidden @ down, None


def model(weights, x):
    x, _ = jax.lax.scan(layer, x, weights)
    return jnp.mean(x.astype(jnp.float32), axis=-1)


def dump(device, out: Path) -> None:
    sharding = SingleDeviceSharding(device)
    shapes = ((2, 128, 256), (2, 256, 128), (16, 128))
    up, down, x = (jax.ShapeDtypeStruct(shape, jnp.bfloat16, sharding=sharding) for shape in shapes)
    with tempfile.TemporaryDirectory() as scratch:
        options = {"xla_dump_to": scratch, "xla_dump_hlo_as_text": True, "xla_dump_hlo_as_proto": True}
        jax.jit(model).lower((up, down), x).compile(compiler_options=options)
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir()
        for path in sorted(Path(scratch).iterdir()):
            if any(part in path.name for part in KEPT) and not any(part in path.name for part in DROPPED):
                shutil.copy(path, out / path.name)


def main() -> None:
    jax.config.update("jax_hlo_source_file_canonicalization_regex", ".*/(?=tests/data/)")
    dump(jax.devices()[0], HERE / "scan-cpu")
    dump(topologies.get_topology_desc(platform="tpu", topology_name="v5e:2x2").devices[0], HERE / "scan-v5e")


if __name__ == "__main__":
    main()
