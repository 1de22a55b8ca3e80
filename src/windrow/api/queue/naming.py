"""Jobs as they are named in paths: by a UUID, or, where others make jobs too, by queue and id."""

from __future__ import annotations

from windrow.api.callers import Caller
from windrow.queue.checks import check_job_id


def name_job(caller: Caller, text: str) -> str:
    """The id as the store has it. Raises InvalidJob if no job there can have it."""
    is_foreign = caller.queue.store.capabilities.foreign_ids
    return str(check_job_id(text, "job_id", is_foreign=is_foreign))
