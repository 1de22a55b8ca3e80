"""Names of files as text that can be stored, and back.

A name on the disk is bytes. Nearly always these are UTF-8, and the text is the name itself. One
that is not, or that a database would not take, is written as `file:` and percent signs, so that no
two names have the same text and the file is found again.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final
from urllib.parse import quote, unquote_to_bytes

PREFIX: Final = "file:"


def to_text(path: str | os.PathLike[str]) -> str:
    """A path as text without surrogates."""
    name = os.fspath(path)
    if name.startswith(PREFIX) or not _is_clean(name):
        return PREFIX + quote(os.fsencode(name), safe="/")
    return name


def to_path(text: str) -> Path:
    """The path that a text is of; also that of a `file://` address."""
    if not text.startswith(PREFIX):
        return Path(text)
    encoded = text.removeprefix(PREFIX)
    if encoded.startswith("//"):  # file:///folder or file://host/folder: ours are of this machine
        encoded = "/" + encoded[2:].partition("/")[2]
    return Path(os.fsdecode(unquote_to_bytes(encoded)))


def to_normal_path(text: str) -> Path:
    """The same without `.`, `..` and doubled slashes. Symbolic links stay: what somebody calls a
    file is its name."""
    return Path(os.path.normpath(to_path(text)))


def _is_clean(name: str) -> bool:
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
