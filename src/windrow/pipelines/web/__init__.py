"""Pages, batches, crawls and maps of sites, as jobs.

A crawl is a group. Its root job, `web.crawl`, whose id is the group's, looks at what the site says
of itself and then waits for the pages. Each page is a job, `web.scrape`. The pages it leads to are
enqueued by the transaction that completes it, under keys that the group takes once.
"""
