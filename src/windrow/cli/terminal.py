"""The terminal: single keys as they are pressed, and the editor of a person's choice."""

from __future__ import annotations

import asyncio
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from windrow.errors import ConfigError

try:
    import termios
    import tty
except ImportError:  # not on Windows: there, Ctrl-C has to do
    termios = None  # type: ignore[assignment]

ARROWS: Final = {b"\x1b[A": "up", b"\x1b[B": "down", b"\x1bOA": "up", b"\x1bOB": "down"}

Keys = asyncio.Queue[str]


@contextmanager
def pressed_keys() -> Iterator[Keys]:
    """A queue of what is pressed; silent if nobody can press anything. In the end the terminal is
    as it was."""
    keys: Keys = asyncio.Queue()
    if termios is None or not sys.stdin.isatty():
        yield keys
        return
    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    loop = asyncio.get_running_loop()

    def read() -> None:
        pressed = os.read(terminal, 32)
        keys.put_nowait(ARROWS.get(pressed) or pressed[:1].decode("ascii", "ignore").lower())

    tty.setcbreak(terminal)
    loop.add_reader(terminal, read)
    try:
        yield keys
    finally:
        loop.remove_reader(terminal)
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)


def edit_text(text: str, suffix: str) -> str:
    """The text as the person left it. $VISUAL, or $EDITOR, or vi; raises ConfigError if that does
    not run."""
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    with tempfile.TemporaryDirectory(prefix="windrow-edit-") as folder:
        path = Path(folder) / f"text{suffix}"
        path.write_text(text, "utf-8")
        try:
            command = [*shlex.split(editor), str(path)]
            subprocess.run(command, check=True)  # noqa: S603 - the person's own $EDITOR
        except (OSError, ValueError, subprocess.CalledProcessError) as error:
            raise ConfigError(
                f"the editor {editor!r} did not do its work, so nothing was changed ({error}): "
                "set EDITOR to another one"
            ) from error
        return path.read_text("utf-8")
