"""Recordings of calls become transcripts and what is made of them, in four stages: see `stages`."""
