"""Questions to the database: queries, filters, frames, where studies stand, their course, rungs."""
