"""The archive: what happened, kept in Parquet files that any engine reads."""
