-- What the tables take, with indexes and room that is free to be used again.
-- Returns total, payloads, results, blobs in bytes.
SELECT (SELECT sum(pg_total_relation_size(oid))
          FROM pg_class WHERE relnamespace = 'windrow'::regnamespace AND relkind = 'r')::bigint AS total,
       pg_total_relation_size('windrow.job_payload') AS payloads,
       (SELECT sum(pg_total_relation_size(relid))
          FROM pg_partition_tree('windrow.job_finished') WHERE isleaf)::bigint AS results,
       pg_total_relation_size('windrow.blob') AS blobs
