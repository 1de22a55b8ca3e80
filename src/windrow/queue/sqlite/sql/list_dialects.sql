-- The dialects that are installed. Returns name, version, installed_at.
SELECT name, version, installed_at FROM windrow_dialect ORDER BY name
