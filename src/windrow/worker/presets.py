"""Timings that go together, under the names of the queues they come from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from windrow.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Preset:
    """None: as usual."""

    lease: int | None = None  # seconds a claim holds without a renewal
    heartbeat: float | None = None  # seconds between renewals
    rescue: float | None = None  # seconds between looks for leases that ran out
    max_attempts: int | None = None  # runs that may report failure
    max_crashes: int | None = None  # runs whose lease may run out
    backoff: str = "default"


PRESETS: Final[dict[str, Preset]] = {
    # Renewed every 15 s, reaped every 15 s, failed at the ninth stall.
    "nuq": Preset(lease=60, heartbeat=15, rescue=15, max_crashes=9),
    # An ordinary error fails at once; a worker that is silent for two minutes is run again thrice.
    "crawl": Preset(lease=120, heartbeat=30, max_attempts=1, max_crashes=4),
    # Three retries after the first run.
    "unified": Preset(lease=300, max_attempts=4),
    # min(600, 30 · 2^attempts) seconds between five runs.
    "processing": Preset(max_attempts=5, backoff="processing"),
}


def find_preset(name: str | None) -> Preset:
    if name is None:
        return Preset()
    if name not in PRESETS:
        raise ConfigError(f"no preset named {name!r}; there are: {', '.join(sorted(PRESETS))}")
    return PRESETS[name]
