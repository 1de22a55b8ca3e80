"""Credentials at rest: sealed with a key that is not in the database.

The key is `WINDROW_SECRET_KEY` (several with commas between: the first seals, all of them open, so
that a key can be replaced), else a file in the data folder that only its owner may read. What a
credential is for is sealed with it: a row that was changed opens nothing.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import tempfile
from functools import cache
from pathlib import Path
from typing import Final

import msgspec
from cryptography.fernet import Fernet, InvalidToken, MultiFernet

from windrow.errors import ConfigError
from windrow.ingest.fetch.credentials import Credential
from windrow.settings import Settings, data_folder

KEY_FILE: Final = "secret.key"
SHORTEST_KEY: Final = 16  # characters
_MADE_KEY: Final = re.compile(r"[A-Za-z0-9_-]{43}=")
_SALT: Final = b"windrow credentials"


class _Sealed(msgspec.Struct):
    tenant: str | None
    name: str
    origin: str
    headers: dict[str, str]
    cookies: dict[str, str]
    user: str | None
    password: str


class Sealer:
    """Seals credentials and opens them again."""

    def __init__(self, settings: Settings) -> None:
        keys = read_secrets(settings)
        self._fernet = MultiFernet([Fernet(_to_fernet_key(key)) for key in keys])

    def seal(self, name: str, tenant: str | None, credential: Credential) -> bytes:
        sealed = _Sealed(
            tenant=tenant,
            name=name,
            origin=credential.origin,
            headers=dict(credential.headers),
            cookies=dict(credential.cookies),
            user=credential.user,
            password=credential.password,
        )
        return self._fernet.encrypt(msgspec.json.encode(sealed))

    def open(self, name: str, tenant: str | None, origin: str, sealed: bytes) -> Credential:
        try:
            found = msgspec.json.decode(self._fernet.decrypt(sealed), type=_Sealed)
        except (InvalidToken, msgspec.DecodeError):
            raise ConfigError(
                f"credential {name!r} was sealed with another key than the one in use: set "
                "WINDROW_SECRET_KEY or WINDROW_DATA_DIR as it was then, or add it again"
            ) from None
        if (found.name, found.tenant, found.origin) != (name, tenant, origin):
            raise ConfigError(f"credential {name!r} was changed in the database: add it again")
        return Credential(
            origin=found.origin,
            headers=found.headers,
            cookies=found.cookies,
            user=found.user,
            password=found.password,
        )


def read_secrets(settings: Settings) -> list[str]:
    """What this installation keeps to itself; the first one is in use. Raises ConfigError."""
    given = [key.strip() for key in settings.secret_key.split(",") if key.strip()]
    return given or [_key_of_folder(data_folder(settings))]


@cache
def _to_fernet_key(text: str) -> bytes:
    """Any text that is long enough; what `Fernet.generate_key` makes is taken as it is."""
    if len(text) < SHORTEST_KEY:
        raise ConfigError(f"secret_key must have at least {SHORTEST_KEY} characters")
    if _MADE_KEY.fullmatch(text):
        return text.encode("ascii")
    slow = hashlib.scrypt(text.encode(), salt=_SALT, n=2**14, r=8, p=1, dklen=32)
    return base64.urlsafe_b64encode(slow)


def _key_of_folder(folder: Path) -> str:
    path = folder / KEY_FILE
    try:
        if not path.exists():
            _make_key(path)
        if path.stat().st_mode & 0o077:
            raise ConfigError(f"others may read {path}: chmod 600 it, and replace what it sealed")
        return path.read_text("ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"the key for credentials, {path}, cannot be used: {error}") from error


def _make_key(path: Path) -> None:
    """A new key, whole or not at all; if somebody else makes one just now, theirs."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent)  # only its owner may read it
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(Fernet.generate_key())
            file.flush()
            os.fsync(file.fileno())
        os.link(temporary, path)
    except FileExistsError:
        return
    finally:
        os.unlink(temporary)
