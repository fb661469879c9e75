"""Makes the sample bundles anew, and README.md that says how: `python sample_dumps/make.py [NAME ...]`.

Run it from the repository's root in an environment with jax[tpu]. What hlotrace does not read is left out of a sample,
so that all of them together stay below a megabyte or two.
"""

from __future__ import annotations

import gzip
import io
import json
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
SAMPLES = {
    "layer-cpu": ("one transformer layer on a CPU, run", ["examples/transformer_layer.py"]),
    "layer-v5e": ("the same layer, compiled for one TPU v5e", ["examples/transformer_layer.py", "--target", "v5e"]),
    "layer-v6e": ("the same layer, compiled for one TPU v6e", ["examples/transformer_layer.py", "--target", "v6e"]),
    "layer-tpu7x": ("the same layer, compiled for one TPU7x", ["examples/transformer_layer.py", "--target", "tpu7x"]),
    "step-v5e-2x2": (
        "a training step of two layers, sharded over four TPU v5e",
        ["examples/train_step_fsdp.py", "--target", "v5e:2x2"],
    ),
    "scan-v5e": ("a scan over twelve layers and its gradient", ["examples/scan_layers.py", "--target", "v5e"]),
}
KEPT = (
    "before_optimizations.txt",
    "after_optimizations.txt",
    "after_codegen.txt",
    "-buffer-assignment.txt",
    "-live-range.txt",
    "-memory-usage-report.txt",
    "target_arguments.txt",
    "tpu_comp_env.txt",
    "flagfile",
    "manifest.json",
)
README_HEAD = """\
# Sample bundles

Real captures made with this tool by `python sample_dumps/make.py`; files that it does not read were left out.
Open one with `hlotrace view --sample NAME`, or `hlotrace show sample_dumps/NAME.tar.gz`.

| sample | what | made by | versions |
| --- | --- | --- | --- |
"""


def capture(arguments: list[str], directory: Path) -> None:
    """Run `hlotrace capture` into `directory`."""
    subprocess.run([sys.executable, "-m", "hlotrace", "capture", *arguments, "-o", str(directory)], check=True)


def neutral(content: bytes, bundle: Path) -> bytes:
    """A text without the paths of the machine that made it: relative to the repository, or to site-packages."""
    for place in (HERE.parent, bundle.parent, Path(sysconfig.get_path("purelib")), Path(sysconfig.get_path("stdlib"))):
        content = content.replace(f"{place}/".encode(), b"")
    return content


def archive(bundle: Path, destination: Path) -> None:
    """Pack what is kept of a bundle; the same content gives the same bytes."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for path in sorted(bundle.rglob("*")):
            inside = path.relative_to(bundle)
            is_hidden = any(part.startswith(".") for part in inside.parts)  # such as the tables that were cached
            if path.is_file() and path.name.endswith(KEPT) and not is_hidden:
                content = neutral(path.read_bytes(), bundle)
                member = tarfile.TarInfo(f"{destination.name.split('.')[0]}/{inside}")
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))
    destination.write_bytes(gzip.compress(packed.getvalue(), mtime=0))


def readme_row(name: str, archive_path: Path) -> str:
    """The sample's line in README.md, with the versions that its manifest states."""
    what, arguments = SAMPLES[name]
    with tarfile.open(archive_path) as tar:
        manifest = json.load(tar.extractfile(f"{name}/manifest.json"))  # type: ignore[arg-type]
    versions = ", ".join(f"{package} {version}" for package, version in manifest["versions"].items())
    return f"| `{name}` | {what} | `hlotrace capture {' '.join(arguments)}` | {versions} |\n"


def make(name: str) -> None:
    """Capture and pack one sample."""
    with tempfile.TemporaryDirectory() as scratch:
        bundle = Path(scratch) / name
        capture(SAMPLES[name][1], bundle)
        archive(bundle, HERE / f"{name}.tar.gz")
        shutil.rmtree(bundle)


if __name__ == "__main__":
    for sample in sys.argv[1:] or SAMPLES:
        make(sample)
    rows = [readme_row(name, path) for name in SAMPLES if (path := HERE / f"{name}.tar.gz").exists()]
    (HERE / "README.md").write_text(README_HEAD + "".join(rows), encoding="utf-8")
