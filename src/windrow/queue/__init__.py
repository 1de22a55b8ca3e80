"""Layer 1: the durable queue. It knows nothing of HTTP or of ingestion."""
