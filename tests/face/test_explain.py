"""`explain`: why a job is not running, in every state it can be in."""

from __future__ import annotations

from windrow import NewJob, Queue
from windrow.ids import new_id
from windrow.queue.job import JobState
from windrow.queue.limits import WINDOW
from windrow.queue.records import Finish, WorkerRow
from windrow.services.explaining import explain


async def reasons(queue: Queue, job_id: str) -> dict[str, str]:
    """What is said of a job, each with its cause."""
    found = await explain(queue, await queue.get(job_id))
    assert all(one.fix or one.what == "it has completed" for one in found)
    return {one.what: one.cause for one in found}


async def start_worker(queue: Queue) -> None:
    await queue.store.register_worker(WorkerRow(new_id(), "w", "w", 1, None, None, 1), 3600)


async def test_ready_job_waits_for_its_turn(queue: Queue) -> None:
    await start_worker(queue)
    job = await queue.enqueue("work")
    assert list(await reasons(queue, job.id)) == ["it is ready and will be claimed"]


async def test_ready_job_that_nobody_takes(queue: Queue) -> None:
    job = await queue.enqueue("work", queue="web")
    assert await reasons(queue, job.id) == {
        "no worker takes it": "no worker has said lately that it is there"
    }
    row = WorkerRow(new_id(), "w", "w", 1, ("web",), ("other",), 1)
    await queue.store.register_worker(row, 3600)
    assert await reasons(queue, job.id) == {
        "no worker takes it": "workers look at the queue `web`, but none has a handler for `work`"
    }
    other = await queue.enqueue("other", queue="mail")
    assert await reasons(queue, other.id) == {
        "no worker takes it": "no worker looks at the queue `mail`"
    }


async def test_job_of_a_paused_queue_and_group(queue: Queue) -> None:
    await start_worker(queue)
    group = await queue.create_group()
    job = await queue.enqueue("work", group=group.id)
    await queue.pause("default")
    await queue.pause_group(group.id)
    found = await reasons(queue, job.id)
    assert list(found)[:2] == ["its queue `default` is paused", f"its group {group.id} is paused"]


async def test_scheduled_job_tells_when_and_why(queue: Queue) -> None:
    await start_worker(queue)
    later = await queue.enqueue("work", delay=3600)
    [(what, cause)] = (await reasons(queue, later.id)).items()
    assert what.startswith("it is scheduled for 20")
    assert cause == "it is for later"
    await queue.enqueue("work")
    lease = await queue.claim()
    await lease.fail(lease.jobs[0], OSError("disk full"), retry_in=60)
    [cause] = (await reasons(queue, lease.jobs[0].id)).values()
    assert cause == "it failed once and is tried again: OSError: disk full"


async def test_held_job_names_its_limits(queue: Queue) -> None:
    await start_worker(queue)
    await queue.set_limit("api", active=1)
    await queue.set_limit("rate", per_second=1, burst=1)
    await queue.enqueue("work", limits=["api", "rate"])
    job = await queue.enqueue("work", limits=["api", "rate"])
    assert await reasons(queue, job.id) == {
        "its limit `api` is reached": (
            "held: limit api is full; 0 of 1 are in use; "
            "1 place is taken by ready jobs of the queue default"
        ),
        "its limit `rate` has a rate": "at most 1 jobs with this key start each second",
    }
    await queue.park_key("api", 3600)
    first, *_ = await reasons(queue, job.id)
    assert first.startswith("its key `api` is parked until 20")


async def test_held_job_names_the_kind_that_has_its_place_and_that_no_worker_takes(
    queue: Queue,
) -> None:
    row = WorkerRow(new_id(), "w", "w", 1, None, ("work",), 1)
    await queue.store.register_worker(row, 3600)
    await queue.set_limit("api", active=1)
    await queue.enqueue("unknown", queue="reports", limits=["api"])
    job = await queue.enqueue("work", limits=["api"])
    [cause] = (await reasons(queue, job.id)).values()
    assert cause == (
        "held: limit api is full; 0 of 1 are in use; 1 place is taken by "
        "ready jobs of the queue reports, where no worker takes `unknown`"
    )


async def test_held_job_of_a_key_without_limit_names_those_that_go_first(queue: Queue) -> None:
    await start_worker(queue)
    await queue.enqueue_many([NewJob("work", limits=["api"]) for _ in range(WINDOW)])
    job = await queue.enqueue("work", limits=["api"])
    assert await reasons(queue, job.id) == {
        "others with its key `api` go first": (
            f"{WINDOW} ready jobs of the queue default have the key, "
            "as many as may wait in the line at a time"
        )
    }


async def test_held_job_whose_limits_have_room_waits_for_a_worker_to_look(queue: Queue) -> None:
    await start_worker(queue)
    await queue.set_limit("api", active=1)
    await queue.enqueue("work", limits=["api"])
    job = await queue.enqueue("work", limits=["api"])
    lease = await queue.claim()
    done = Finish(lease.jobs[0].id, lease.jobs[0].lease_token or "", JobState.COMPLETED)
    await queue.store.finish_jobs([done])  # and promotes nothing
    assert list(await reasons(queue, job.id)) == ["it is held until a worker looks for room"]


async def test_held_job_names_the_one_it_follows(queue: Queue) -> None:
    await start_worker(queue)
    first = await queue.enqueue("work", unique="site")
    await queue.claim()
    job = await queue.enqueue("work", unique="site", on_conflict="follow")
    assert job.state == JobState.HELD
    assert await reasons(queue, job.id) == {
        f"it follows job {first.id}": "that job has the unique key `site` and is active"
    }


async def test_paused_job(queue: Queue) -> None:
    job = await queue.enqueue("work")
    await queue.pause_job(job.id)
    assert await reasons(queue, job.id) == {"it is paused": "somebody paused this job"}


async def test_running_job_names_who_holds_its_lease(queue: Queue) -> None:
    job = await queue.enqueue("work")
    await queue.claim(worker="host:7")
    [(what, cause)] = (await reasons(queue, job.id)).items()
    assert what == "it is running"
    assert cause.startswith("host:7 holds the lease until 20")
    await queue.cancel(job.id)
    assert list(await reasons(queue, job.id)) == ["it is running, and was told to stop (cancelled)"]


async def test_root_that_waits_for_its_group(queue: Queue) -> None:
    root = await queue.enqueue("crawl")
    lease = await queue.claim()
    group = await queue.create_group(root=root.id)
    await queue.enqueue("page", group=group.id)
    await lease.complete(lease.jobs[0])
    assert await reasons(queue, root.id) == {
        "it has run and waits for its group": f"1 jobs of group {group.id} have not ended"
    }
    await queue.pause_group(group.id)
    [cause] = (await reasons(queue, root.id)).values()
    assert cause.endswith("; the group is paused")


async def test_jobs_that_have_ended_tell_how(queue: Queue) -> None:
    await queue.enqueue("work", max_attempts=1)
    lease = await queue.claim()
    await lease.fail(lease.jobs[0], ValueError("no title"))
    [(what, cause)] = (await reasons(queue, lease.jobs[0].id)).items()
    assert what == "it has failed"
    assert cause.startswith("ValueError: no title (runs: 1 failed, 0 crashed; it ended at ")
    job = await queue.enqueue("work")
    await queue.cancel(job.id, reason="enough")
    [(what, cause)] = (await reasons(queue, job.id)).items()
    assert (what, cause.split(",")[0]) == ("it was cancelled", "enough")
    await queue.enqueue("work")
    lease = await queue.claim()
    await lease.complete(lease.jobs[0])
    assert list(await reasons(queue, lease.jobs[0].id)) == ["it has completed"]
