-- A schedule has fired slots, or passed them over. Its twin moves many at once.
-- :name :next_at :last_at (the last slot fired, or null: none was)
UPDATE windrow_schedule SET next_at = :next_at, last_at = coalesce(:last_at, last_at)
WHERE name = :name
