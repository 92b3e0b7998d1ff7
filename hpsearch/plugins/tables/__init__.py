"""CSV and Parquet files: past runs, a row for each.

- `tables`: reads them
"""

from hpsearch.domain.plugins.offers import SourcePlugin

offers = [
    SourcePlugin(
        "table",
        what="a .csv, .tsv or .parquet file",
        takes="hpsearch.plugins.tables.tables:is_table",
        runs="hpsearch.plugins.tables.tables:read",
    )
]
