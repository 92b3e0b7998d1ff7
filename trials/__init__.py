"""Training of trials: one configuration, one budget, reports along the way. Knows nothing of
studies."""
