"""Derived tables: what follows from attempts, runs and messages. Functions of DataFrames alone."""
