-- Groups that were made a short while ago and go on: members may be about to come. :ids; :seconds;
-- :now or null. Returns id.
SELECT id
  FROM windrow.job_group
 WHERE id = ANY (:ids::uuid[])
   AND state = 'active'
   AND created_at > coalesce(:now::timestamptz, statement_timestamp())
                    - :seconds::double precision * interval '1 second'
