"""`SpeechKit`: Yandex SpeechKit, asynchronous recognition v2, by an API key or a service account.

A start is paid for, whether or not its answer arrives: it is asked for once, and who asks keeps the
id before anything else. Polls are free and counted by the hour, as starts are: see `quotas`. The
IAM tokens of a service account are renewed well before they expire.
"""

from __future__ import annotations

import asyncio
import base64
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Protocol, Self

import msgspec

from windrow.errors import ConfigError, ProviderError
from windrow.ingest.providers import ANSWER_SECONDS, Answer, Provider
from windrow.ingest.transcribe import Line, Quota, Speech, Transcript
from windrow.settings import Settings

NAME: Final = "SpeechKit"
START: Final = Quota("speechkit:start", per_hour=500)
POLL: Final = Quota("speechkit:poll", per_hour=2500)
LONGEST_SECONDS: Final = 4 * 3600.0
MODEL: Final = "general"

METADATA: Final = "metadata"
METADATA_URL: Final = (
    "http://169.254.169.254/computeMetadata/v1/instance/service-accounts/default/token"
)
AUDIENCE: Final = "https://iam.api.cloud.yandex.net/iam/v1/tokens"
JWT_SECONDS: Final = 3600
# A token lives for hours: it is renewed well before its end, so that none ends on its way.
RENEW_SECONDS: Final = 600.0


class _Word(msgspec.Struct, rename="camel"):
    start_time: str = "0s"
    end_time: str = "0s"


class _Alternative(msgspec.Struct):
    text: str = ""
    words: list[_Word] = []


class _Chunk(msgspec.Struct, rename="camel"):
    alternatives: list[_Alternative] = []
    channel_tag: str | int = ""


class _Response(msgspec.Struct):
    chunks: list[_Chunk] = []  # none where nobody speaks


class _Error(msgspec.Struct):
    code: int | str = ""
    message: str = ""


class _Operation(msgspec.Struct):
    id: str
    done: bool = False
    response: _Response | None = None
    error: _Error | None = None


class SpeechKit:
    model = f"speechkit:{MODEL}"
    wants_upload = True
    quotas = (START, POLL)
    # Recognition takes about ten seconds for each minute.
    seconds_per_second = 1 / 6

    def __init__(
        self,
        identity: Identity,
        *,
        url: str,
        operations_url: str,
        language: str = "ru-RU",
        poll_seconds: float = 5.0,
        answer_seconds: float = ANSWER_SECONDS,
    ) -> None:
        self._identity = identity
        self._url = f"{url.rstrip('/')}/speech/stt/v2/longRunningRecognize"
        self._operations = f"{operations_url.rstrip('/')}/operations"
        self._language = language
        self.poll_seconds = poll_seconds
        self._starting = Provider(NAME, limit_key=START.key, seconds=answer_seconds)
        self._polling = Provider(NAME, limit_key=POLL.key, seconds=answer_seconds)

    @classmethod
    def from_settings(cls, settings: Settings) -> Self:
        return cls(
            open_identity(settings),
            url=settings.speechkit_url,
            operations_url=settings.speechkit_operations_url,
            language=settings.speechkit_language,
            poll_seconds=settings.speechkit_poll_interval_ms / 1000,
        )

    async def start(self, speech: Speech) -> str:
        if speech.uri is None:
            raise ProviderError(NAME, "reads recordings from a bucket: set artifacts_url to one")
        if speech.seconds > LONGEST_SECONDS:
            hours = f"{speech.seconds / 3600:.1f}"
            raise ProviderError(NAME, f"takes recordings of up to 4 hours, not of {hours}")
        # No audioChannelCount: with OGG it is refused.
        specification = {
            "languageCode": self._language,
            "model": MODEL,
            "audioEncoding": "OGG_OPUS",
            "literature_text": True,
        }
        body = {"config": {"specification": specification}, "audio": {"uri": speech.uri}}
        answer = await self._ask(self._starting, "POST", self._url, body)
        return answer.read(_Operation).id

    async def poll(self, operation: str, speech: Speech) -> Transcript | None:
        answer = await self._ask(self._polling, "GET", f"{self._operations}/{operation}")
        found = answer.read(_Operation)
        if found.error is not None:  # it may be there before it is done
            why = f"could not transcribe this: {found.error.message} (code {found.error.code})"
            raise ProviderError(NAME, why)
        if not found.done:
            return None
        return Transcript(_lines(found.response or _Response()), self.model, self._language)

    async def close(self) -> None:
        for one in (self._identity, self._starting, self._polling):
            await one.close()

    async def _ask(self, provider: Provider, method: str, url: str, body: object = None) -> Answer:
        headers = {"Authorization": await self._header()}
        try:
            return await provider.ask(method, url, headers=headers, body=body)
        except ProviderError as error:
            if error.status != 401 or not self._identity.is_renewable:
                raise
        # A token may end before its time. Nothing was begun: it can be asked for again.
        headers = {"Authorization": await self._header(renew=True)}
        return await provider.ask(method, url, headers=headers, body=body)

    async def _header(self, *, renew: bool = False) -> str:
        try:
            return await self._identity.header(renew=renew)
        except ProviderError as error:
            error.was_sent = False  # not to SpeechKit, which is what counts
            raise


def _lines(response: _Response) -> tuple[Line, ...]:
    tags = {str(chunk.channel_tag) for chunk in response.chunks}
    lines: list[Line] = []
    for chunk in response.chunks:
        said = chunk.alternatives[0] if chunk.alternatives else _Alternative()
        if not said.text.strip():
            continue
        before = lines[-1].end if lines else 0.0
        start = _seconds(said.words[0].start_time) if said.words else before
        end = _seconds(said.words[-1].end_time) if said.words else start
        # With one channel its number says nothing of who speaks.
        speaker = str(chunk.channel_tag) if len(tags) > 1 else ""
        lines.append(Line(start, end, said.text.strip(), speaker))
    return tuple(sorted(lines, key=lambda line: line.start))


def _seconds(text: str) -> float:
    try:
        return float(text.removesuffix("s"))
    except ValueError:
        return 0.0


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
