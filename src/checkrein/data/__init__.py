"""The logged transitions: Dataset, its columns, episodes, compression and files."""
