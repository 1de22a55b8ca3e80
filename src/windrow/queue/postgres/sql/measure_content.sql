-- About what the rows themselves take, whatever free room lies between them. Reads them all, but
-- not the large values. Returns used in bytes.
SELECT ((SELECT coalesce(sum(pg_column_size(payload) + 150), 0) FROM windrow.job_payload)
      + (SELECT coalesce(sum(pg_column_size(job_finished.*) + 100
                             + CASE WHEN pg_column_size(result) > 2000 THEN pg_column_size(result)
                                    ELSE 0 END), 0) FROM windrow.job_finished)
      + (SELECT count(*) * 600 FROM windrow.job_live)
      + (SELECT count(*) * 300 FROM windrow.job_error)
      + (SELECT coalesce(sum(pg_column_size(result) + 150), 0) FROM windrow.job_step)
      + (SELECT coalesce(sum(bytes), 0) FROM windrow.page)
      + (SELECT coalesce(sum(pg_column_size(body)), 0) FROM windrow.blob))::bigint AS used
