-- Whether a leaf has any job. {leaf}. Returns is_used.
SELECT EXISTS (SELECT FROM windrow.{leaf}) AS is_used
