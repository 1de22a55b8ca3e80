-- Change what a job was handed. :id; :payload; :headers; :tags; the flags :has_payload,
-- :has_headers, :has_tags say which.
-- gate tenant
UPDATE windrow.job_payload
   SET payload = CASE WHEN :has_payload::boolean THEN :payload::json ELSE payload END,
       headers = CASE WHEN :has_headers::boolean THEN :headers::json ELSE headers END,
       tags = CASE WHEN :has_tags::boolean THEN nullif(:tags::text[], '{}') ELSE tags END
 WHERE id = :id::uuid
