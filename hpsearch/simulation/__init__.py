"""A whole study on recorded curves and a virtual clock: nothing is trained.

- `running`: runs a study to its end, in a database in memory
- `executor`: slots of a simulated cluster
- `curves`: recorded learning curves
- `curve_file`: reads them from a CSV or Parquet file
"""
