"""Projects: the id of a folder's project, its git repository, and the branch it is on.

A project is known by its remote, wherever it was cloned to; else by its path. Credentials in the
address of a remote are left out before anything is made of it. What git knows is read from its
files: running git would take milliseconds each time, and need a git. Only what is written in a way
that cannot be read here (reference tables, included configuration) is asked of git itself.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

DIGITS: Final = 12
LOCAL: Final = "local_"

_SCP: Final = re.compile(r"^(?:[^@/\s]+@)?([^:/\s]+):(?!//)(.+)$")
_SLASHES: Final = re.compile(r"/{2,}")
DEFAULT_PORTS: Final = {"http": 80, "https": 443, "ssh": 22, "git": 9418}

REMOTES: Final = ("origin", "upstream")  # the first of these that there is
GIT_SECONDS: Final = 10.0

_SECTION: Final = re.compile(r'^\[\s*([\w.-]+)(?:\s+"((?:[^"\\]|\\.)*)")?\s*\]\s*(.*)$')
_HASH: Final = re.compile(r"^[0-9a-f]{40}(?:[0-9a-f]{24})?$")


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


@dataclass(frozen=True, slots=True)
class Repository:
    root: Path  # of the files
    folder: Path  # of this working tree's own state
    common: Path  # of what all working trees share

    @property
    def branch(self) -> str:
        """The branch the files are of; of a commit without one its first digits."""
        head = _read(self.folder / "HEAD").strip()
        if head.startswith("ref:"):
            name = head.removeprefix("ref:").strip().removeprefix("refs/heads/")
            return name if name != ".invalid" else self._ask("branch", "--show-current")
        return head[:12] if _HASH.match(head) else ""

    def branches(self) -> set[str]:
        """All there are here, and the one the files are of, which may have no commit yet."""
        heads = self.common / "refs" / "heads"
        if (self.common / "reftable").is_dir():
            listed = self._ask("for-each-ref", "--format=%(refname:short)", "refs/heads")
            return {*listed.split("\n"), self.branch} - {""}
        loose = {path.relative_to(heads).as_posix() for path in heads.rglob("*") if path.is_file()}
        packed = {
            line.partition(" refs/heads/")[2]
            for line in _read(self.common / "packed-refs").splitlines()
            if " refs/heads/" in line
        }
        return {*loose, *packed, self.branch} - {""}

    @property
    def remote(self) -> str | None:
        """The address of the remote, as it is written: with its credentials."""
        config = _read(self.common / "config")
        addresses = _remotes(config)
        for name in REMOTES:
            if name in addresses:
                return addresses[name]
        if re.search(r"^\s*\[include", config, re.M):
            return self._ask("config", "--get", f"remote.{REMOTES[0]}.url") or None
        return None

    def _ask(self, *arguments: str) -> str:
        try:
            answer = subprocess.run(  # noqa: S603 - no shell, and the words are ours
                ["git", "-C", str(self.root), *arguments],  # noqa: S607 - the git of the PATH is meant
                capture_output=True,
                timeout=GIT_SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return ""
        return answer.stdout.decode("utf-8", "replace").strip()


def find_repository(path: Path) -> Repository | None:
    """The repository that a file or folder is in."""
    for folder in (path, *path.parents):
        git = folder / ".git"
        if git.is_dir() and (git / "HEAD").is_file():
            return Repository(folder, git, _common(git))
        if git.is_file():
            named = _read(git).strip()
            if named.startswith("gitdir:"):
                state = folder / named.removeprefix("gitdir:").strip()
                if (state / "HEAD").is_file():
                    return Repository(folder, state, _common(state))
    return None


def _common(state: Path) -> Path:
    named = _read(state / "commondir").strip()
    return state / named if named else state


def _remotes(config: str) -> dict[str, str]:
    """The addresses of remotes, by their names; of several of one, the first."""
    found: dict[str, str] = {}
    remote: str | None = None
    for line in config.splitlines():
        line = line.strip()
        section = _SECTION.match(line)
        if section is not None:
            is_remote = section[1].lower() == "remote"
            remote = re.sub(r"\\(.)", r"\1", section[2]) if is_remote and section[2] else None
            line = section[3]
        if remote is None or not line or line[0] in "#;":
            continue
        name, equals, value = line.partition("=")
        if equals and name.strip().lower() == "url":
            found.setdefault(remote, _value(value))
    return found


def _value(text: str) -> str:
    """A value of git's configuration, without its quotes and the comment behind it."""
    made, is_quoted, at = [], False, 0
    text = text.strip()
    while at < len(text):
        char = text[at]
        if char == "\\" and at + 1 < len(text):
            at += 1
            made.append(text[at])
        elif char == '"':
            is_quoted = not is_quoted
        elif char in "#;" and not is_quoted:
            break
        else:
            made.append(char)
        at += 1
    return "".join(made).strip()


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8", "surrogateescape")
    except OSError:
        return ""
