"""Spark itself: sessions, Java, file systems, Parquet and errors."""
