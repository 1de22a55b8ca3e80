"""Single keys from a terminal, as they are pressed."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

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
