-- Keep the results of jobs. :ids; :results, or null where it is in the blob of :hashes; :are_cleaned.
INSERT INTO windrow.job_result (id, result, blob, is_cleaned)
SELECT id, result, hash, is_cleaned
  FROM unnest(:ids::uuid[], :results::json[], :hashes::bytea[], :are_cleaned::boolean[])
       AS given (id, result, hash, is_cleaned)
    ON CONFLICT (id) DO UPDATE
   SET result = excluded.result, blob = excluded.blob, is_cleaned = excluded.is_cleaned
