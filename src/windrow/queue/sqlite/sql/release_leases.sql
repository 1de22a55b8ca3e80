-- Jobs of a lease are no longer held.
-- :token :count
UPDATE windrow_lease SET pending = pending - :count WHERE token = :token
