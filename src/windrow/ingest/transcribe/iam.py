"""Who asks Yandex Cloud: an API key, or a service account whose IAM tokens are renewed in time."""

from __future__ import annotations

import asyncio
import base64
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Protocol

import msgspec

from windrow.errors import ConfigError
from windrow.ingest.providers import Provider
from windrow.settings import Settings

METADATA: Final = "metadata"
METADATA_URL: Final = (
    "http://169.254.169.254/computeMetadata/v1/instance/service-accounts/default/token"
)
AUDIENCE: Final = "https://iam.api.cloud.yandex.net/iam/v1/tokens"
JWT_SECONDS: Final = 3600
# A token lives for hours: it is renewed well before its end, so that none ends on its way.
RENEW_SECONDS: Final = 600.0


class Identity(Protocol):
    async def header(self, *, renew: bool = False) -> str:
        """What `Authorization` is to say; `renew`: the last one was refused."""
        ...

    @property
    def is_renewable(self) -> bool: ...

    async def close(self) -> None: ...


class ApiKey:
    is_renewable = False

    def __init__(self, key: str) -> None:
        self._key = key

    async def header(self, *, renew: bool = False) -> str:
        return f"Api-Key {self._key}"

    async def close(self) -> None:
        return None


class AccountKey(msgspec.Struct, frozen=True):
    """The file that Yandex Cloud makes for a service account."""

    id: str
    service_account_id: str
    private_key: str


class _Token(msgspec.Struct, frozen=True):
    text: str
    ends_at: float  # by the monotonic clock


class IamTokens:
    """Tokens of a service account, by its key or by the metadata of the virtual machine."""

    is_renewable = True

    def __init__(self, url: str, key: AccountKey | None = None) -> None:
        """Without a key, `url` is that of the metadata."""
        self._url = url
        self._key = key
        self._provider = Provider("IAM")
        self._token: _Token | None = None
        self._lock = asyncio.Lock()

    async def header(self, *, renew: bool = False) -> str:
        async with self._lock:
            token = self._token
            if token is None or renew or token.ends_at - time.monotonic() < RENEW_SECONDS:
                token = self._token = await self._fetch()
        return f"Bearer {token.text}"

    async def close(self) -> None:
        await self._provider.close()

    async def _fetch(self) -> _Token:
        if self._key is None:
            return await self._fetch_from_metadata()
        jwt = await asyncio.to_thread(sign, self._key)
        url = f"{self._url}/iam/v1/tokens"
        answer = (await self._provider.ask("POST", url, body={"jwt": jwt})).read(_Exchanged)
        # Its own end says when: a clock that differs from theirs by minutes does no harm.
        return _Token(answer.iam_token, time.monotonic() + answer.seconds())

    async def _fetch_from_metadata(self) -> _Token:
        headers = {"Metadata-Flavor": "Google"}
        answer = (await self._provider.ask("GET", self._url, headers=headers)).read(_FromMetadata)
        return _Token(answer.access_token, time.monotonic() + answer.expires_in)


class _Exchanged(msgspec.Struct, rename="camel"):
    iam_token: str
    expires_at: str

    def seconds(self) -> float:
        try:
            at = datetime.fromisoformat(self.expires_at)
        except ValueError:
            return 0.0  # asked for anew each time
        return (at - datetime.now(UTC)).total_seconds()


class _FromMetadata(msgspec.Struct):
    access_token: str
    expires_in: float


def open_identity(settings: Settings) -> Identity:
    """Raises ConfigError if the account's file is none."""
    if settings.speechkit_key:
        return ApiKey(settings.speechkit_key)
    if settings.speechkit_account == METADATA:
        return IamTokens(METADATA_URL)
    path = Path(settings.speechkit_account).expanduser()
    try:
        key = msgspec.json.decode(path.read_bytes(), type=AccountKey)
    except (OSError, msgspec.DecodeError) as error:
        raise ConfigError(f"speechkit_account: {path} is no authorized key: {error}") from error
    return IamTokens(settings.speechkit_iam_url.rstrip("/"), key)


def sign(key: AccountKey) -> str:
    """A token that says who we are, signed by PS256."""
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import padding, rsa
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    # Files of Yandex begin with a line of warning that is no part of the key.
    pem = key.private_key[max(key.private_key.find("-----BEGIN"), 0) :]
    try:
        private = load_pem_private_key(pem.encode(), None)
    except ValueError as error:
        raise ConfigError(f"speechkit_account: its private key cannot be read: {error}") from error
    if not isinstance(private, rsa.RSAPrivateKey):
        raise ConfigError("speechkit_account: its private key is none of RSA")
    now = int(time.time())
    head = {"typ": "JWT", "alg": "PS256", "kid": key.id}
    body = {"iss": key.service_account_id, "aud": AUDIENCE, "iat": now, "exp": now + JWT_SECONDS}
    signed = f"{_base64(msgspec.json.encode(head))}.{_base64(msgspec.json.encode(body))}"
    pss = padding.PSS(padding.MGF1(hashes.SHA256()), padding.PSS.DIGEST_LENGTH)
    return f"{signed}.{_base64(private.sign(signed.encode(), pss, hashes.SHA256()))}"


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
