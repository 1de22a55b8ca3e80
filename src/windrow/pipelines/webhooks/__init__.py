"""What happens to a crawl or batch, told to an address that its owner named.

Each delivery is a job, `webhook.deliver`, enqueued by the transaction of what it tells of, and sent
until the other side has taken it. The deliveries of one run are a group of their own: its end is
told when all its pages have been.
"""
