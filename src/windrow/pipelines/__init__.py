"""The handlers of Windrow's own kinds of jobs, one folder per kind of source."""
