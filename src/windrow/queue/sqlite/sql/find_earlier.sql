-- The id of a job that lies so many jobs back.
-- {conditions} those of `looking.py`, with their parameters; :is_finished, whether only those that
-- have ended are counted, or only others, or null: both; :count
-- Returns id, or nothing if there are not so many.
SELECT j.id FROM windrow_job_live AS j WHERE :is_finished IS NOT 1 AND {conditions}
UNION ALL
SELECT j.id FROM windrow_job_finished AS j WHERE :is_finished IS NOT 0 AND {conditions}
ORDER BY 1 DESC
LIMIT 1 OFFSET :count
