-- Schedules leave for another database.
-- Returns them as they were.
DELETE FROM windrow_schedule RETURNING *
