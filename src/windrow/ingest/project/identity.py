"""By whose name a project is known: its remote, wherever it was cloned to; else its path.

Credentials in the address of a remote are left out before anything is made of it.
"""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

DIGITS: Final = 12
LOCAL: Final = "local_"

_SCP: Final = re.compile(r"^(?:[^@/\s]+@)?([^:/\s]+):(?!//)(.+)$")
_SLASHES: Final = re.compile(r"/{2,}")
DEFAULT_PORTS: Final = {"http": 80, "https": 443, "ssh": 22, "git": 9418}


def normalise_remote(url: str) -> str:
    """`git@GitHub.com:a/b.git` and `https://token@github.com/a/b` are both `github.com/a/b`."""
    text = url.strip()
    if "://" in text:
        parts = urlsplit(text)
        host = (parts.hostname or "").lower()
        port = _port(parts.netloc)
        if port is not None and port != DEFAULT_PORTS.get(parts.scheme.lower()):
            host = f"{host}:{port}"
        path = parts.path
    elif (found := _SCP.match(text)) is not None:
        host, path = found[1].lower(), found[2]
    else:
        host, path = "", text
    whole = _SLASHES.sub("/", f"{host}/{path}" if host else path)
    return whole.rstrip("/").removesuffix(".git").rstrip("/").lower()


def tenant_of_remote(url: str, place: str = "") -> str:
    """The id of a project with a remote. Clones that are to be told apart have a place each."""
    normal = normalise_remote(url)
    return _digest(f"{normal}|{place}" if place else normal)


def tenant_of_path(path: str | os.PathLike[str]) -> str:
    """The id of a project that has none. Symbolic links are left as they are: what somebody calls
    the folder is its name."""
    absolute = os.path.normpath(os.path.abspath(path))
    return LOCAL + _digest(absolute)


def tenant_of(path: Path, remote: str | None) -> str:
    return tenant_of_remote(remote) if remote else tenant_of_path(path)


def without_credentials(url: str) -> str:
    """The address of a remote as it may be shown and kept."""
    text = url.strip()
    if "://" not in text:
        return text
    parts = urlsplit(text)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def _port(netloc: str) -> int | None:
    found = re.search(r":(\d+)$", netloc)
    return int(found[1]) if found else None


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:DIGITS]
