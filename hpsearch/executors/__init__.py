"""Executors: what runs attempts on slots. Each one passes the same contract suite."""
