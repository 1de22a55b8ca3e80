"""The queue on Redis, through the official `bullmq` package: its jobs are BullMQ's own, so that
workers and producers in Node share them."""
