"""Questions to the database: queries, filters, frames, and how studies stand."""
