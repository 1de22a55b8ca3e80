-- Runs whose members are in the usage. :ids json array
UPDATE windrow_usage_run SET is_open = 0 WHERE id IN (SELECT value FROM json_each(:ids))
