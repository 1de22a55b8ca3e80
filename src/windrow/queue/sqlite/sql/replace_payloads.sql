-- The payload, headers and tags of a replaced or edited job.
-- :seq :payload :headers :tags (json texts) :is_cleaned
UPDATE windrow_job_payload
SET payload = :payload, headers = :headers, tags = :tags, is_cleaned = :is_cleaned
WHERE seq = :seq
