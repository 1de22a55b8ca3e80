-- A collection, unless it is there. :tenant :name :embedder :dimension; :now.
INSERT INTO windrow.collection (tenant, name, embedder, dimension, generation, created_at)
VALUES (:tenant::text, :name::text, :embedder::text, :dimension::integer, 1,
        coalesce(:now::timestamptz, statement_timestamp()))
    ON CONFLICT (tenant, name) DO NOTHING
