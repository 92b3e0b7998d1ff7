"""One file a version, named by its number."""
