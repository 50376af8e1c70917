"""The report: summary -> data -> page."""
