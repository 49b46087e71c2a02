"""What everything stands on: errors, spellings, text, arrays and numerics."""
