-- Dialects: which foreign schemas lie over the queue.
CREATE TABLE windrow_dialect (
  name TEXT PRIMARY KEY,
  version TEXT NOT NULL,
  installed_at INTEGER NOT NULL
);
