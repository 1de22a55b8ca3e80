-- The tables of the schema, and what is wrong with each: is_secured, problem (or null).
SELECT relrowsecurity AS is_secured,
       CASE WHEN NOT relrowsecurity THEN 'table ' || oid::regclass || ' has no row-level security'
            WHEN relispartition AND relname <> ALL (ARRAY['job_live', 'job_finished'])
                 AND EXISTS (SELECT FROM aclexplode(relacl) AS given
                              WHERE given.grantee <> relowner
                                AND given.grantee <> ALL (ARRAY(SELECT oid FROM pg_roles
                                                     WHERE rolname IN ('windrow_worker',
                                                                       'windrow_gate'))))
            THEN 'leaf ' || oid::regclass || ' is granted to somebody'
            WHEN EXISTS (SELECT FROM aclexplode(relacl) WHERE grantee = 0)
            THEN 'table ' || oid::regclass || ' is granted to everybody' END AS problem
  FROM pg_class
 WHERE relnamespace = 'windrow'::regnamespace AND relkind IN ('r', 'p')
 ORDER BY relname
