"""Names to addresses, in threads of its own: slow name servers hold up nobody else's threads."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from aiohttp.abc import AbstractResolver, ResolveResult

THREADS: Final = 16


class Resolver(AbstractResolver):
    def __init__(self, seconds: float = 10.0) -> None:
        self._seconds = seconds
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="windrow-dns")

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self._seconds):
                found = await loop.run_in_executor(self._threads, _look_up, host, port, family)
        except TimeoutError as error:
            why = f"the name server did not answer within {self._seconds:g} s"
            raise socket.gaierror(socket.EAI_AGAIN, why) from error
        return [
            ResolveResult(
                hostname=host,
                host=str(where[0]),
                port=port,
                family=kind,
                proto=protocol,
                flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
            )
            for kind, _, protocol, _, where in found
        ]

    async def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


def _look_up(host: str, port: int, family: int) -> Sequence[tuple[Any, ...]]:
    # As bytes, because the codec for str refuses names that the name server should answer for.
    return socket.getaddrinfo(
        host.encode("ascii"), port, family, socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG
    )
