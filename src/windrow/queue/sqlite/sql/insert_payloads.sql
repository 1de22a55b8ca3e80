-- What a new job carries.
-- :seq :payload :headers :tags (json texts) :is_cleaned
INSERT INTO windrow_job_payload (seq, payload, headers, tags, is_cleaned)
VALUES (:seq, :payload, :headers, :tags, :is_cleaned)
