-- Keep large results by their hash; one that is there is only locked, so that nobody removes it
-- before the transaction that needs it has ended. :hashes, :bodies.
INSERT INTO windrow.blob (hash, body)
SELECT hash, body
  FROM unnest(:hashes::bytea[], :bodies::bytea[]) AS given (hash, body)
 ORDER BY hash
    ON CONFLICT (hash) DO UPDATE SET hash = excluded.hash
