-- The last seq that was given away. Returns seq.
SELECT last_value AS seq FROM windrow.job_seq
