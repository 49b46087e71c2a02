"""Policies: one ranked list per context, how it is found, explained, compared and exported."""
