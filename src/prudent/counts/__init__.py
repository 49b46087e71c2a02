"""Counts: a log as an additive histogram, its days, and its lists as arrays."""
