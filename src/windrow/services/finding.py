"""The job or group that a person means, by its id or the beginning of it. Ids are ordered by the
time they were made, so the index of ids answers that."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from windrow.errors import GroupNotFound, InvalidJob, JobNotFound
from windrow.ids import is_id, plain_id
from windrow.queue.queue import Queue

# A beginning has at least so many digits: the time to about a minute.
SHORTEST: Final = 8
DIGITS: Final = 32
MOST_NAMED: Final = 5

Missing = type[JobNotFound] | type[GroupNotFound]


async def find_job(queue: Queue, text: str) -> str:
    """The id of the one job whose id begins like this. Raises JobNotFound, or InvalidJob if there
    are several."""
    if is_id(text):
        return plain_id(text)
    if queue.store.capabilities.foreign_ids and ":" in text:
        return text  # in full: such ids are short
    page = await queue.list(after=_end(text, JobNotFound), limit=MOST_NAMED)
    return _only_one(text, [job.id for job in page], JobNotFound)


async def find_group(queue: Queue, text: str) -> str:
    """The id of the one group whose id begins like this. Raises GroupNotFound, or InvalidJob if
    there are several."""
    if is_id(text):
        return plain_id(text)
    page = await queue.groups(after=_end(text, GroupNotFound), limit=MOST_NAMED)
    return _only_one(text, [group.id for group in page], GroupNotFound)


async def with_group(queue: Queue, wanted: Mapping[str, Any]) -> dict[str, Any]:
    """A filter of jobs whose group, if it names one, is named in full."""
    named = wanted.get("group")
    return {**wanted, "group": await find_group(queue, named)} if named else {**wanted}


def _end(text: str, missing: Missing) -> str:
    """The first id that does not begin like this any more: those below it, newest first, may."""
    digits = text.replace("-", "").lower()
    if not re.fullmatch(rf"[0-9a-f]{{{SHORTEST},{DIGITS - 1}}}", digits):
        raise missing(text)
    following = min(int(digits, 16) + 1, 16 ** len(digits) - 1)
    return plain_id(f"{following:0{len(digits)}x}".ljust(DIGITS, "0"))


def _only_one(text: str, ids: Sequence[str], missing: Missing) -> str:
    digits = text.replace("-", "").lower()
    alike = [one for one in ids if one.replace("-", "").startswith(digits)]
    if not alike:
        raise missing(text)
    if len(alike) > 1:
        raise InvalidJob(
            f"{text} is the beginning of several ids: {', '.join(alike)}; write more of the one "
            "you mean"
        )
    return alike[0]
