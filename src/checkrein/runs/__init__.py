"""One run from file to folder."""
