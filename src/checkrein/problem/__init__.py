"""What is to be minimised, under which limits."""
