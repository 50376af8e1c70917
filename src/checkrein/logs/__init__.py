"""What practitioners have, tables and files, made into datasets."""
