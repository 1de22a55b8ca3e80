"""Letting a person change a text in the editor of their choice."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from pathlib import Path

from windrow.errors import ConfigError


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
