"""Projects: which repository a folder is, by whose name it is known, and the branch it is on."""
