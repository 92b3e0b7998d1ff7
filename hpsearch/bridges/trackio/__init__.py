"""Trackio: runs for the trials of a study."""
