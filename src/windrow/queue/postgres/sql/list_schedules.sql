-- All schedules, by name: in the order of its characters, as SQLite has it.
SELECT * FROM windrow.schedule ORDER BY name COLLATE "C"
