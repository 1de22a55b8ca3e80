-- Append to the error history of jobs. :ids, :reasons, :types, :messages, :tracebacks, :times (null:
-- now); :now or null.
-- gate tenant
INSERT INTO windrow.job_error (job_id, at, reason, type, message, traceback)
SELECT id, coalesce(at, :now::timestamptz, statement_timestamp()), reason, type, message, traceback
  FROM unnest(:ids::uuid[], :times::timestamptz[], :reasons::text[], :types::text[],
              :messages::text[], :tracebacks::text[])
       AS given (id, at, reason, type, message, traceback)
