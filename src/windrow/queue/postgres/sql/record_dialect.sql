-- A dialect was installed, or brought up to date. :name, :version; :now or null.
INSERT INTO windrow.dialect (name, version, installed_at)
VALUES (:name::text, :version::text, coalesce(:now::timestamptz, statement_timestamp()))
    ON CONFLICT (name) DO UPDATE
   SET version = excluded.version, installed_at = excluded.installed_at
