"""Questions to the database: queries, filters, frames, and the state of studies."""
