"""Logs: which columns mean what, in which formats, and readers for formats of others."""
