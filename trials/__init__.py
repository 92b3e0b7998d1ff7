"""Trials: one configuration, one budget, reports on the way. Knows nothing of studies."""
