"""Trackio: runs for the trials of a study. `write` sends them."""
