"""Clean environments with Windrow in them, as its wheel installs it: `install` asks the package
index, `link` takes the distributions from the environment that the tests run in.
"""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, PathDistribution, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Environment:
    """A virtual environment; commands run in its own empty `home`."""

    folder: Path
    packages: Path
    home: Path

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    def run(self, *words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        """Run its Python with these words, and check the exit code."""
        done = subprocess.run(
            [self.python, *words],
            cwd=self.home,
            env=self.variables(),
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == code, f"{words}\n{done.stdout}\n{done.stderr}"
        return done

    def windrow(self, *words: str, code: int = 0) -> str:
        """What a command of Windrow prints: results, and if it fails its error."""
        done = self.run("-m", "windrow", *words, code=code)
        return done.stderr if code else done.stdout

    def variables(self) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("WINDROW_", "PYTHON"))}
        return {
            **kept,
            "WINDROW_DATA_DIR": str(self.home / "data"),
            "WINDROW_ALLOW_PRIVATE_NETWORKS": "1",
        }


def build(folder: Path) -> tuple[Path, Path]:
    """The wheel and the source distribution of this tree."""
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-d", folder],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    [wheel], [source] = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return wheel, source


def install(
    folder: Path, wheel: Path, extra: str = "", python: str = sys.executable
) -> Environment:
    """An environment into which pip has installed the wheel with an extra, at the pinned versions.
    BullMQ and fastembed ask for others than the tests have, so with them the newest are taken."""
    made = _new(folder, python, "--clear")
    named = f"{wheel}[{extra}]" if extra else str(wheel)
    pins = [] if extra in ("all", "bullmq", "fastembed") else ["-c", str(ROOT / "constraints.txt")]
    subprocess.run(
        [made.python, "-m", "pip", "install", "--quiet", *pins, named],
        check=True,
        capture_output=True,
    )
    return made


def link(folder: Path, wheel: Path, extra: str = "") -> Environment:
    """The same without an index: all that the wheel requires is linked to where it is installed.
    The unpacked wheel is linked too, so that it is compiled once for all."""
    made = _new(folder, sys.executable, "--without-pip")
    unpacked = wheel.with_suffix(".unpacked")
    if not unpacked.exists():
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(unpacked)
    for path in unpacked.iterdir():
        (made.packages / path.name).symlink_to(path)
    [metadata] = unpacked.glob("windrow-*.dist-info")
    for needed in _closure(PathDistribution(metadata), extra):
        for top in {file.parts[0] for file in needed.files or ()}:
            target = made.packages / top
            if top not in ("..", "__pycache__") and not target.exists():
                target.symlink_to(Path(str(needed.locate_file(top))))
    return made


def _new(folder: Path, python: str, option: str) -> Environment:
    subprocess.run([python, "-m", "venv", option, folder / "venv"], check=True)
    [packages] = (folder / "venv" / "lib").glob("python*/site-packages")
    home = folder / "home"
    home.mkdir()
    return Environment(folder / "venv", packages, home)


def _closure(start: Distribution, extra: str) -> Iterator[Distribution]:
    """All that a distribution with an extra requires here, itself left out."""
    own = canonicalize_name(start.metadata["Name"])
    seen: set[tuple[str, str]] = set()
    given: set[str] = set()
    waiting = [(start, extra)]
    while waiting:
        current, wanted = waiting.pop()
        for line in current.requires or ():
            requirement = Requirement(line)
            marker = requirement.marker
            if marker is not None and not marker.evaluate({"extra": wanted}):
                continue
            name = canonicalize_name(requirement.name)
            try:
                found = start if name == own else distribution(name)
            except PackageNotFoundError:
                continue  # a test of what needs it fails
            for inner in ("", *requirement.extras):
                if (name, inner) not in seen and (name != own or inner):
                    seen.add((name, inner))
                    waiting.append((found, inner))
            if name != own and name not in given:
                given.add(name)
                yield found
