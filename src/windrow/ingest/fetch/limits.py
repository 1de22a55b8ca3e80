"""How much of a server's behaviour is put up with."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FetchLimits:
    total_seconds: float = 30.0  # redirects and body included
    connect_seconds: float = 10.0  # for the name, and again for TCP and TLS
    silence_seconds: float = 15.0  # without a byte
    patience_seconds: float = 10.0  # after this a body must have come at the rate below
    min_bytes_per_second: float = 256.0
    max_bytes: int = 20 * 1024 * 1024  # of a body, as sent and decompressed
    max_redirects: int = 20
    max_headers: int = 256  # lines of an answer's head
    max_header_bytes: int = 32 * 1024  # of one line; real policies of content reach 16 KiB
    connections: int = 200
    connections_per_host: int = 0  # 0: any number; politeness is the business of limits
