"""`Queue.sync` as a type checker sees it: lines with an expected error end with it as a comment."""

from __future__ import annotations

from windrow import Job, NewJob, Queue
from windrow.queue.sync_queue import SyncLease, SyncQueue

with Queue.sync("sqlite:///jobs.db", migrate=True) as queue:
    face: SyncQueue = queue
    made: Job = queue.enqueue("mail", {"to": "a"}, priority=8, delay=5, tags=["x"])
    queue.enqueue("mail", priorty=8)  # E: Unexpected keyword argument "priorty"
    queue.enqueue(5)  # E: matches argument type "int"
    queue.enqueu("mail")  # E: has no attribute "enqueu"
    queue.enqueue_many([NewJob("mail")])
    number: int = queue.counts()["ready"]
    text: str = queue.counts()["ready"]  # E: Incompatible types in assignment
    lease: SyncLease = queue.claim(["mail"], limit=10, wait=0.5)
    for job in lease.jobs:
        lease.complete(job, {"sent": True}, then=[NewJob("log")])
        lease.complete(job.id)  # E: has incompatible type "str"
        lease.fial(job, "x")  # E: has no attribute "fial"
    with queue.events() as events:
        for event in events:
            print(event.type, event.nothing)  # E: has no attribute "nothing"
    with queue.job_queue("mail") as jobs:
        claimed = jobs.claim("me")
        if claimed is not None:
            jobs.complete(claimed.id, result=1)
            jobs.complete(claimed)  # E: has incompatible type "Job[Any]"
    finished: Job = queue.wait(made.id, timeout=3)
    finished = queue.wait(made)
    queue.as_tenant("acme").enqueue("mail")
    queue.cancel_all(reason="stop", state="failed")
Queue.sync("sqlite:///jobs.db", migrat=True)  # E: Unexpected keyword argument "migrat"
