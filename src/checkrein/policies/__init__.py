"""Policies, and what the log supports."""
