-- Fold the changes of the tally into one row per queue and state. Safe to run twice at once: the
-- second finds the lock taken and does nothing. Nothing changes by it, so nobody is told.
WITH folding AS (
    DELETE FROM windrow.tally
     WHERE (SELECT pg_try_advisory_xact_lock(hashtextextended('windrow.tally', 0)))
       AND (SELECT set_config('windrow.is_folding', 'on', true)) = 'on'
    RETURNING queue, state, n
)
INSERT INTO windrow.tally (n, queue, state)
SELECT sum(n), queue, state FROM folding GROUP BY queue, state HAVING sum(n) <> 0
