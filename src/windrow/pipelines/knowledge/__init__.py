"""Files, folders, projects, libraries and notes become documents, as jobs.

An item is a job of the queue `unified_queue`, whose kind is the item's type and its operation:
`file.ingest`. What a folder has is found by one job, which enqueues the files that are new, changed
or gone in the transaction that completes it. Work on one thing has one key: what comes while it is
running follows it, and a newer operation takes the place of one that waits.
"""
