-- Places in the line for a bulk insert, and its time. :count; :now or null. Returns seqs, now, bounded:
-- the queues whose depth is bounded, for which COPY will not do.
-- Only Postgres has it: COPY returns nothing, so what it will write is known beforehand.
SELECT array_agg(nextval('windrow.job_seq')) AS seqs,
       coalesce(:now::timestamptz, statement_timestamp()) AS now,
       ARRAY(SELECT name FROM windrow.queue WHERE max_depth IS NOT NULL) AS bounded
  FROM generate_series(1, :count::integer)
