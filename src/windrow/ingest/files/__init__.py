"""Files and folders: what is there, what is left out, what each one is, and the text of it."""
