"""Firecrawl's v2, as its clients speak it: one file for each verb."""
