-- Record what was copied in. :type; :states, :queues, :kinds, :tenants and :job_ids (texts of arrays),
-- one of each for a row; :now or null. Only what COPY wrote: any other statement does it by itself.
INSERT INTO windrow.event (at, leaf, type, state, queue, kind, tenant, job_ids)
SELECT coalesce(:now::timestamptz, statement_timestamp()),
       windrow.event_leaf(coalesce(:now::timestamptz, statement_timestamp())),
       :type::text, state, queue, kind, tenant, job_ids::uuid[]
  FROM unnest(:states::text[], :queues::text[], :kinds::text[], :tenants::text[], :job_ids::text[])
       AS given (state, queue, kind, tenant, job_ids)
