-- All schedules, by name.
SELECT * FROM windrow_schedule ORDER BY name
