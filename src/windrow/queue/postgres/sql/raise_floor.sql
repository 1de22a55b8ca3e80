-- Events up to a number are being removed. :seq. Under the lock on their leaf.
UPDATE windrow.event_floor SET seq = greatest(seq, :seq::bigint)
