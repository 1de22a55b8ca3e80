-- An expired group whose members are gone.
-- :ids json array
DELETE FROM windrow_job_group WHERE id IN (SELECT value FROM json_each(:ids))
