-- Lock blobs, so that nobody begins to use them. :hashes. Returns hash.
-- gate tenant
SELECT hash FROM windrow.blob WHERE hash = ANY (:hashes::bytea[]) ORDER BY hash FOR UPDATE
