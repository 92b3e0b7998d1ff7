"""Tables: past runs from CSV and Parquet files, and such files from studies."""
