-- Every table, column, constraint, index, partition and sequence of the schema as a line of text.
-- Returns line, sorted. For comparing two databases; SQLite keeps its own DDL in sqlite_schema.
SELECT line COLLATE "C" AS line
  FROM (SELECT format('%s %s partition of %s %s options %s',
                      CASE relkind WHEN 'p' THEN 'partitioned table' WHEN 'r' THEN 'table'
                                   WHEN 'S' THEN 'sequence' WHEN 'v' THEN 'view'
                                   ELSE relkind::text END,
                      oid::regclass,
                      coalesce((SELECT inhparent::regclass::text FROM pg_inherits
                                 WHERE inhrelid = pg_class.oid), '-'),
                      coalesce(pg_get_expr(relpartbound, oid), pg_get_partkeydef(oid), '-'),
                      coalesce(reloptions::text, '-')) AS line
          FROM pg_class
         WHERE relnamespace = 'windrow'::regnamespace AND relkind NOT IN ('i', 'I', 't', 'c')
         UNION ALL
        SELECT format('column %s %s %s %s%s default %s identity %s',
                      attrelid::regclass, lpad(attnum::text, 3, '0'), attname,
                      format_type(atttypid, atttypmod),
                      CASE WHEN attnotnull THEN ' not null' ELSE '' END,
                      coalesce(pg_get_expr(adbin, adrelid), '-'), nullif(attidentity, ''))
          FROM pg_attribute
          JOIN pg_class ON pg_class.oid = attrelid
          LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
         WHERE relnamespace = 'windrow'::regnamespace AND relkind IN ('r', 'p', 'v')
           AND attnum > 0 AND NOT attisdropped
         UNION ALL
        SELECT format('constraint %s %s %s', conrelid::regclass, conname,
                      pg_get_constraintdef(oid))
          FROM pg_constraint
         WHERE connamespace = 'windrow'::regnamespace AND contype <> 'n'
         UNION ALL
        SELECT format('index %s', indexdef) FROM pg_indexes WHERE schemaname = 'windrow'
       ) AS described
 ORDER BY line
