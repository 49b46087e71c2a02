"""Randomised variants of a policy's lists: what they teach, and what they cost at most."""
