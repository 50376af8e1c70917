"""Regression targets, and the fitted iteration that FQI and FQE share."""
