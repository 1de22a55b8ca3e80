-- The counter of seqs, which SQLite makes with the first insert into the table.
INSERT INTO sqlite_sequence (name, seq)
SELECT 'windrow_job_live', 0
WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = 'windrow_job_live')
