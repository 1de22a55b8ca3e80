"""docs/reference/, made from the code: each module renders one page. `make docs` writes them
(`python -m tests.reference`), and a test fails when one differs from what the code says."""
