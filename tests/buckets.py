"""A server that speaks S3, and buckets on it."""

from __future__ import annotations

import functools
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from windrow.settings import Settings


@contextmanager
def run_s3() -> Iterator[str]:
    """The address of a server in a thread, on a free port."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        yield f"http://{host}:{port}"
    finally:
        server.stop()


def bucket_settings(endpoint: str) -> Settings:
    """Settings that name a new bucket there."""
    name = f"calls-{secrets.token_hex(6)}"
    _client(endpoint).create_bucket(Bucket=name)
    return Settings(
        artifacts_url=f"s3://{name}/recordings",
        s3_endpoint=endpoint,
        s3_region="us-east-1",
        s3_key="hay",
        s3_secret="stack",
    )


def sign(uri: str) -> str:
    """The address of something in a bucket, for somebody who may read it."""
    parts = urlsplit(uri)
    _, bucket, key = parts.path.split("/", 2)
    client = _client(f"{parts.scheme}://{parts.netloc}")
    asked = {"Bucket": bucket, "Key": key}
    return str(client.generate_presigned_url("get_object", Params=asked))


@functools.cache  # making one takes longer than most of what it is asked for
def _client(endpoint: str) -> Any:
    import boto3
    from botocore.config import Config

    return boto3.client(
        "s3",
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id="hay",
        aws_secret_access_key="stack",
        config=Config(s3={"addressing_style": "path"}),
    )
