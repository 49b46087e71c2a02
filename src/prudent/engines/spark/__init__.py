"""The engine on many machines; needs pyspark."""
