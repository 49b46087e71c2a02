"""Business rules: what a list must have, and must not have, whatever the clicks say."""
