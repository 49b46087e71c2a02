"""Engines: DuckDB on one machine, Spark on many; the same text counts in both."""
