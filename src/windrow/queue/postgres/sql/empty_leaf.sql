-- Give all the room of an emptied leaf and its indexes back at once. {leaf}, locked.
TRUNCATE windrow.{leaf}
