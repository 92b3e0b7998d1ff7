"""A whole study on recorded curves and a virtual clock: nothing is trained.

- `running`: runs a study to its end on simulated slots, in a database in memory
- `curves`: recorded learning curves
- `curve_file`: reads them from a CSV or Parquet file
"""
