-- New jobs come after the ones that were copied in. :seq, the last one that must not be given away.
SELECT setval('windrow.job_seq', :seq::bigint)
 WHERE :seq::bigint > (SELECT last_value FROM windrow.job_seq)
