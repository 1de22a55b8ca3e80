"""Who looks: a session in a cookie, begun with an API key.

The cookie names the key by its hash, under a signature that only this installation can make: what
stands in the database is not enough to log in. A session that was logged out is kept in the
database as revoked until its cookie expires. Forms carry a token made from the session, so that
no page of another site can send them for somebody.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from starlette.requests import Request

from windrow.api.callers import check_is_local
from windrow.services.keys import Identity, KeyRing, Role, hash_key

COOKIE: Final = "windrow_session"
NOTE: Final = "windrow_note"  # what the next page says, once
SECONDS: Final = 12 * 3600
LOCAL: Final = "local"  # the session of this machine, while there are no keys
_EVERYTHING: Final = Identity(None, "admin")


class NotLoggedIn(Exception):
    """Somebody must log in first."""


class Forbidden(Exception):
    """The role does not allow it, or the form is not ours."""


@dataclass(frozen=True, slots=True)
class Viewer:
    identity: Identity
    token: str  # that the forms of this session carry
    is_local: bool = False  # nobody has to log in here

    @property
    def tenant(self) -> str | None:
        return self.identity.tenant

    def may(self, role: Role) -> bool:
        return self.identity.may(role)

    def require(self, role: Role) -> None:
        if not self.may(role):
            raise Forbidden(f"your key may only {self.identity.role}: this takes {role}")


class Sessions:
    def __init__(self, secret: bytes, keys: KeyRing) -> None:
        self._secret = hashlib.sha256(b"windrow dashboard" + secret).digest()
        self._keys = keys

    async def begin(self, key: str) -> str | None:
        """The cookie of a new session, or None: there is no such key."""
        hashed = hash_key(key)
        if hashed not in await self._keys.read():
            return None
        return self._sealed(f"{hashed}.{int(time.time()) + SECONDS}.{secrets.token_hex(8)}")

    async def end(self, request: Request) -> None:
        """Log out: the cookie is refused from now on, whoever has a copy."""
        if said := self._opened(request.cookies.get(COOKIE, "")):
            _, until, _ = said.split(".")
            await self._keys.revoke(said, datetime.fromtimestamp(int(until), UTC))

    async def view(self, request: Request) -> Viewer:
        """Who looks. Raises NotLoggedIn, and ApiError where only this machine is served."""
        keys = await self._keys.read()
        if not keys:
            check_is_local(request)
            return Viewer(_EVERYTHING, self._token(LOCAL), is_local=True)
        said = self._opened(request.cookies.get(COOKIE, ""))
        hashed, until, _ = said.split(".") if said.count(".") == 2 else ("", "0", "")
        is_over = int(until) < time.time() or hashed not in keys
        if is_over or await self._keys.is_revoked(said):
            raise NotLoggedIn
        return Viewer(keys[hashed], self._token(said))

    def write_note(self, viewer: Viewer, text: str) -> str:
        """A cookie with what is to be said to this session, and by nobody else."""
        said = base64.urlsafe_b64encode(text.encode(errors="replace")).decode()
        return f"{said}.{self._sign_note(viewer, said)}"

    def read_note(self, viewer: Viewer, cookie: str) -> str:
        """What was written for this session, or nothing."""
        said, _, signature = cookie.partition(".")
        is_ours = hmac.compare_digest(signature.encode(), self._sign_note(viewer, said).encode())
        return base64.urlsafe_b64decode(said).decode() if is_ours else ""

    def _sign_note(self, viewer: Viewer, said: str) -> str:
        return self._sign(f"note {viewer.token} {said}")

    def _token(self, session: str) -> str:
        return self._sign(f"form {session}")

    def _sealed(self, text: str) -> str:
        return f"{text}.{self._sign(text)}"

    def _opened(self, cookie: str) -> str:
        text, _, signature = cookie.rpartition(".")
        # As bytes: as texts only those of ASCII can be compared.
        is_ours = hmac.compare_digest(signature.encode(), self._sign(text).encode())
        return text if is_ours else ""

    def _sign(self, text: str) -> str:
        digest = hmac.digest(self._secret, text.encode(), "sha256")
        return base64.urlsafe_b64encode(digest).decode().rstrip("=")
