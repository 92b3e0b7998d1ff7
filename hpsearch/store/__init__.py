"""The database: the only memory of a study."""
