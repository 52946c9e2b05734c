"""The pipeline: the archive in Spark. The only package that imports pyspark."""
