-- What a new job carries.
-- :seq :payload :headers :tags (json texts; none of them: null or empty, which is bound faster)
-- :is_cleaned
INSERT INTO windrow_job_payload (seq, payload, headers, tags, is_cleaned)
VALUES (:seq, :payload, nullif(:headers, ''), nullif(:tags, ''), :is_cleaned)
