-- Send something to a channel. :channel, :payload.
SELECT pg_notify(:channel::text, :payload::text)
