-- Places in the line for a bulk insert, and its time. :count; :now or null. Returns seqs, now.
-- Only Postgres has it: COPY returns nothing, so what it will write is known beforehand.
SELECT array_agg(nextval('windrow.job_seq')) AS seqs,
       coalesce(:now::timestamptz, statement_timestamp()) AS now
  FROM generate_series(1, :count::integer)
