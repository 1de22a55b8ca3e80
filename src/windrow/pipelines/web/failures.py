"""Why a job of the web failed, read from what is kept of it."""

from __future__ import annotations

import re
from typing import Final

from windrow.queue.job import Job

# As a job keeps it: the name of the error's class, its code, and the rest.
_CODE: Final = re.compile(r"^(?:\w+: )?([A-Z][A-Z0-9_]{3,}): ")


def why_failed(job: Job) -> tuple[str | None, str]:
    """The code and the words of why a job failed."""
    return split_code(job.error or "")


def split_code(message: str) -> tuple[str | None, str]:
    found = _CODE.match(message)
    return (found[1], message[found.end() :]) if found else (None, message)
