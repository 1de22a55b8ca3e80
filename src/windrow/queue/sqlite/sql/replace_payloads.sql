-- The payload, headers and tags of a replaced or edited job.
-- :seq :payload :headers :tags (json texts; none of them: null or empty) :is_cleaned
UPDATE windrow_job_payload
SET payload = :payload, headers = nullif(:headers, ''), tags = nullif(:tags, ''),
  is_cleaned = :is_cleaned
WHERE seq = :seq
