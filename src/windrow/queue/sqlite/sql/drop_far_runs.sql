-- Runs of jobs that are gone. :keys (json array)
DELETE FROM windrow_far_run WHERE key IN (SELECT value FROM json_each(:keys))
