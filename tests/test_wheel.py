"""The built wheel in an empty environment: what the base install needs, and the README's own commands."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
BINARIES = "Scripts" if os.name == "nt" else "bin"
CHECKOUT = ("pyproject.toml", "README.md", "LICENSE", "hlotrace", "parsers", "app", "sample_dumps", "examples")


def run(*command: str | Path, cwd: Path) -> str:
    """What a command prints; the test fails with its output when it fails."""
    done = subprocess.run([str(word) for word in command], cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a wheel built from the checkout, the examples, and an environment with the base install."""
    place = tmp_path_factory.mktemp("wheel")
    (place / "source").mkdir()
    for name in CHECKOUT:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, place / "source" / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, place / "source" / name)
    run(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", place, place / "source", cwd=place)
    (wheel,) = place.glob("hlotrace-*.whl")
    venv.create(place / "env", with_pip=True)
    run(place / "env" / BINARIES / "pip", "install", "-q", wheel, cwd=place)
    shutil.move(place / "source" / "examples", place / "examples")
    shutil.rmtree(place / "source")
    return place


def readme_blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)


def readme_commands() -> list[list[str]]:
    """The hlotrace commands of the README's console blocks, in order."""
    lines = [line[2:] for block in readme_blocks("console") for line in block.splitlines() if line.startswith("$ ")]
    return [shlex.split(line, comments=True) for line in lines if line.startswith("hlotrace ")]


@pytest.mark.slow
def test_the_base_install_reads_shows_and_reports_without_jax_or_protobuf(installed: Path) -> None:
    binaries = installed / "env" / BINARIES
    packages = run(binaries / "pip", "list", "--format=freeze", cwd=installed).lower()
    assert not re.search(r"^(jax|jaxlib|protobuf)==", packages, re.MULTILINE)
    sample = run(
        binaries / "python",
        "-c",
        "import hlotrace.sample_dumps as s; print(s.path_of('layer-v5e'))",
        cwd=installed,
    ).strip()
    assert "fusion" in run(binaries / "hlotrace", "show", sample, "ops", cwd=installed)
    run(binaries / "hlotrace", "report", sample, "-o", "sample.html", cwd=installed)
    assert (installed / "sample.html").stat().st_size > 10_000


@pytest.mark.slow
@pytest.mark.tpu_compiler
def test_the_readme_commands_run_as_they_stand(installed: Path) -> None:
    commands = readme_commands()
    assert len(commands) >= 4
    (wheel,) = installed.glob("hlotrace-*.whl")
    binaries = installed / "env" / BINARIES
    run(binaries / "pip", "install", "-q", f"{wheel}[tpu]", cwd=installed)
    for program, *arguments in commands:
        if arguments[0] == "view":
            run(binaries / program, "view", "--help", cwd=installed)
        else:
            run(binaries / program, *arguments, cwd=installed)
    for block in readme_blocks("python"):
        run(binaries / "python", "-W", "error", "-c", block, cwd=installed)
