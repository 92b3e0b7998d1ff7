"""Questions to the database: queries, filters, frames, where studies stand, trust in rungs."""
