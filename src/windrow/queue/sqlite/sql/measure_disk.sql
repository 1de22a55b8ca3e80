-- What the file takes. The parts are told from the first thousand rows of each table.
-- Returns total, used, payloads, results, blobs in bytes.
SELECT
  pages.page_count * size.page_size AS total,
  (pages.page_count - free.freelist_count) * size.page_size AS used,
  coalesce((
    SELECT avg(length(payload)) FROM (SELECT payload FROM windrow_job_payload LIMIT 1000)
  ) * (SELECT count(*) FROM windrow_job_payload), 0) AS payloads,
  coalesce((
    SELECT avg(length(result)) FROM (SELECT result FROM windrow_job_result LIMIT 1000)
  ) * (SELECT count(*) FROM windrow_job_result), 0) AS results,
  coalesce((SELECT sum(length(body)) FROM windrow_blob), 0) AS blobs
FROM pragma_page_count() AS pages, pragma_page_size() AS size, pragma_freelist_count() AS free
