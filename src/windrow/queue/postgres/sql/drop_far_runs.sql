-- Runs of jobs that are gone. :keys.
DELETE FROM windrow.far_run WHERE key = ANY (:keys::text[])
