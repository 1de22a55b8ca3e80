"""Pages that answered with an error (404, 500), noted of their crawl's or batch's group.

Such a page is a document and its job completed, so nothing but the document says that it is no
page. The note is written by the transaction that completes the job: there is one for each, and it
is the document's. Notes begin with the job's id, so those of jobs in a row are read in a row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from windrow.pipelines.web.payloads import PagePayload
from windrow.pipelines.web.scraping import Scraped
from windrow.queue.job import Job
from windrow.queue.queue import Queue

SUBJECT: Final = "answers"
LEAST: Final = 400
OF_SERVER: Final = 500  # and above: it may well answer better another time
TOO_MANY: Final = 429


@dataclass(frozen=True, slots=True)
class BadAnswer:
    """A page whose answer was an error."""

    job: str
    status: int
    url: str

    @property
    def may_pass(self) -> bool:
        """Whether the page may answer better when it is asked again."""
        return self.status >= OF_SERVER or self.status == TOO_MANY


async def note_answer(job: Job, payload: PagePayload, scraped: Scraped) -> None:
    """Last, because on Postgres a transaction is open from here on."""
    status = scraped.document.metadata.status_code
    if status >= LEAST and payload.crawl_id is not None and job.tx is not None:
        await job.tx.note(payload.crawl_id, SUBJECT, [f"{job.id} {status} {payload.url}"])


async def list_bad_answers(
    queue: Queue, crawl_id: str, *, since: str = "", limit: int = 1000
) -> list[BadAnswer]:
    """The pages that answered with an error, oldest first; `since` is the job to begin with."""
    notes = await queue.group_notes(crawl_id, SUBJECT, after=since, limit=limit)
    return [_read(note) for note in notes]


def _read(note: str) -> BadAnswer:
    job, status, url = note.split(" ", 2)
    return BadAnswer(job, int(status), url)
