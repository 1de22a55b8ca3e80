-- How the file is used.
-- Returns journal_mode.
SELECT journal_mode FROM pragma_journal_mode()
