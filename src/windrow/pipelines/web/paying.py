"""What the jobs of the web cost their tenant, where it has a quota: a credit for each page.

What is asked for by itself is counted by its completion. The pages of a crawl or batch are counted
by its group, as long as it goes on, and by its finish job, once, when it has ended.
"""

from __future__ import annotations

import msgspec

from windrow.accounts import Accounts
from windrow.accounts.usage import RunRow, UsageRow
from windrow.pipelines.web.context import Web
from windrow.pipelines.web.payloads import BatchPayload, BudgetPayload, CrawlPayload
from windrow.queue.job import Job


async def pay(web: Web, job: Job, budget: BudgetPayload | None, credits: int = 1) -> None:
    """Count credits if and only if the job is completed."""
    if budget is not None and job.tenant is not None:
        usage = UsageRow(job.tenant, budget.period, credits)
        await Accounts(web.queue.database).usage.add([usage], tx=job.tx)


async def open_run(web: Web, job: Job, payload: CrawlPayload | BatchPayload) -> None:
    """Have the pages of a crawl or batch counted; before its group is made, so that none is missed.
    A job that runs again does it once."""
    if payload.budget is not None and job.tenant is not None:
        run = RunRow(payload.crawl_id, job.tenant, payload.budget.period)
        await Accounts(web.queue.database).usage.open_runs([run])


def within_budget(payload: CrawlPayload) -> CrawlPayload:
    """A crawl that ends, at the latest, with what was left of the quota when it was asked for."""
    options = payload.crawler_options
    if payload.budget is None or options.limit <= payload.budget.credits:
        return payload
    cut = msgspec.structs.replace(options, limit=payload.budget.credits)
    return msgspec.structs.replace(payload, crawler_options=cut)
