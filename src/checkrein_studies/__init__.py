"""Studies: users of the public API like any other, each with its environment."""
