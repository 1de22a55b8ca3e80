-- Schedules leave for another database; one that is just being fired is waited for. Returns them as
-- they were.
DELETE FROM windrow.schedule RETURNING *
