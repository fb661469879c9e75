"""Captures the 8-billion-parameter training script for a TPU v5e 4x4, and measures memory and time.

    python benchmarks/capture_8b.py

Ends with 1 when the capture takes 4 GB of memory or 10 minutes, or more. Prints a row for RESULTS.md.
"""

import datetime
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from hlotrace.bundle import read_manifest

SCRIPT = Path(__file__).parent.parent / "examples" / "train_8b_fsdp.py"
MOST_BYTES, MOST_SECONDS = 4e9, 600


def main():
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "bundle"
        command = [sys.executable, "-m", "hlotrace", "capture", str(SCRIPT), "--target", "v5e:4x4", "-o", str(out)]
        start = time.monotonic()
        subprocess.run(command, check=True)
        wall = time.monotonic() - start
        manifest = read_manifest(out)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    largest, processor = used.ru_maxrss * 1024, used.ru_utime + used.ru_stime
    versions = ", ".join(f"{name} {manifest.versions[name]}" for name in ("jax", "libtpu", "flax"))
    row = f"{datetime.date.today()} | {versions} | {processor:.0f} s | {wall:.0f} s | {largest / 1e9:.2f} GB"
    print(f"| {row} |")
    assert [program.failure for program in manifest.programs] == [None, None]
    sys.exit(largest >= MOST_BYTES or wall >= MOST_SECONDS)


if __name__ == "__main__":
    main()
