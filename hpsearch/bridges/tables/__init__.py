"""Tables, CSV and Parquet: `read` takes past runs from them, `write` makes them of studies."""
