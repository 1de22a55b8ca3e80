-- A dialect was installed, or brought up to date. :name, :version, :now.
INSERT INTO windrow_dialect (name, version, installed_at) VALUES (:name, :version, :now)
ON CONFLICT (name) DO UPDATE SET version = excluded.version, installed_at = excluded.installed_at
