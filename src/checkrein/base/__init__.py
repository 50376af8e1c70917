"""What every room stands on: arrays, errors, storage."""
