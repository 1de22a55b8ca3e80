"""`BucketArtifacts`: a bucket of AWS, Yandex, MinIO or whoever speaks S3 (extra `s3`)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Self, TypeVar
from urllib.parse import quote, urlsplit

from windrow.errors import ConfigError, FileGone, MissingExtra, ProviderError
from windrow.ingest.artifacts import check_key
from windrow.settings import Settings

NAME: Final = "the bucket"
CONNECT_SECONDS: Final = 10.0
READ_SECONDS: Final = 60.0
TYPES: Final = {
    ".ogg": "audio/ogg",
    ".flac": "audio/flac",
    ".json": "application/json",
}
_ABSENT: Final = frozenset({"404", "NoSuchKey", "NotFound"})
_PASSING: Final = frozenset({"SlowDown", "RequestTimeout", "InternalError", "ServiceUnavailable"})

T = TypeVar("T")


class BucketArtifacts:
    """`client` is one of boto3's, which may be used by several threads."""

    def __init__(self, client: Any, bucket: str, prefix: str = "") -> None:
        self._client = client
        self._bucket = bucket
        self._prefix = f"{prefix.strip('/')}/" if prefix.strip("/") else ""

    @classmethod
    def from_settings(cls, settings: Settings) -> Self:
        try:
            import boto3
            from botocore.config import Config
        except ImportError as error:
            raise MissingExtra("s3", "artifacts in a bucket") from error
        named = urlsplit(settings.artifacts_url)
        if not named.netloc:
            raise ConfigError("artifacts_url names no bucket: s3://bucket or s3://bucket/prefix")
        client = boto3.client(
            "s3",
            endpoint_url=settings.s3_endpoint or None,
            region_name=settings.s3_region or None,
            # Without these boto3 looks where it always does: its own environment and files.
            aws_access_key_id=settings.s3_key or None,
            aws_secret_access_key=settings.s3_secret or None,
            config=Config(
                connect_timeout=CONNECT_SECONDS,
                read_timeout=READ_SECONDS,
                retries={"mode": "standard", "total_max_attempts": 2},
                s3={"addressing_style": "path"},
                # Only where it must: not every server knows the checksums of today's AWS.
                request_checksum_calculation="when_required",
                response_checksum_validation="when_required",
            ),
        )
        return cls(client, named.netloc, named.path)

    async def put(self, key: str, path: Path) -> bool:
        """A large file is sent in parts, which cannot be made to depend on what is there: of two
        that put it at once the last stays. Both have the same, as the key says what it is."""
        if await self.size(key) is not None:
            return False
        kept = self._key(key)
        kind = TYPES.get(path.suffix, "application/octet-stream")
        extra = {"ExtraArgs": {"ContentType": kind}}
        await self._ask(lambda: self._client.upload_file(str(path), self._bucket, kept, **extra))
        return True

    async def get(self, key: str, path: Path) -> None:
        kept = self._key(key)
        try:
            await self._ask(lambda: self._client.download_file(self._bucket, kept, str(path)))
        except _Absent as error:
            raise FileGone(key) from error

    async def size(self, key: str) -> int | None:
        kept = self._key(key)
        try:
            found = await self._ask(lambda: self._client.head_object(Bucket=self._bucket, Key=kept))
        except _Absent:
            return None
        return int(found["ContentLength"])

    async def remove(self, key: str) -> None:
        kept = self._key(key)
        await self._ask(lambda: self._client.delete_object(Bucket=self._bucket, Key=kept))

    def address(self, key: str) -> str | None:
        endpoint = str(self._client.meta.endpoint_url).rstrip("/")
        return f"{endpoint}/{self._bucket}/{quote(self._key(key))}"

    async def close(self) -> None:
        await asyncio.to_thread(self._client.close)

    def _key(self, key: str) -> str:
        return f"{self._prefix}{check_key(key)}"

    async def _ask(self, call: Callable[[], T]) -> T:
        """What boto3 answers; its errors become ours here."""
        from boto3.exceptions import S3UploadFailedError
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            return await asyncio.to_thread(call)
        except ClientError as error:
            raise _refusal(error) from error
        except S3UploadFailedError as error:
            inner = error.__context__
            if isinstance(inner, ClientError):
                raise _refusal(inner) from error
            raise ProviderError(NAME, f"did not take a file: {error}", transient=True) from error
        except BotoCoreError as error:
            is_passing = "Credentials" not in type(error).__name__
            raise ProviderError(NAME, f"does not answer: {error}", transient=is_passing) from error


class _Absent(Exception):
    """There is nothing under this key."""


def _refusal(error: Any) -> Exception:
    said = error.response.get("Error", {})
    status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    code = str(said.get("Code", status))
    if code in _ABSENT:
        return _Absent(code)
    return ProviderError(
        NAME,
        f"answers with {status} {code}: {said.get('Message', 'no reason given')}",
        status=status,
        transient=status >= 500 or code in _PASSING,
    )
