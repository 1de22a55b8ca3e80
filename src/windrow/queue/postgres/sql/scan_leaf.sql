-- Finished jobs of a leaf whose time is over, in some of its pages. {leaf}; :first_page and :end_page
-- (not included); :now or null. Returns id.
SELECT id
  FROM windrow.{leaf}
 WHERE ctid >= format('(%s,0)', :first_page::bigint)::tid
   AND ctid < format('(%s,0)', :end_page::bigint)::tid
   AND expires_at <= coalesce(:now::timestamptz, statement_timestamp())
