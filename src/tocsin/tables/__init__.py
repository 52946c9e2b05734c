"""The tables that the pipeline makes: their schemas, and how they are read without Spark."""
