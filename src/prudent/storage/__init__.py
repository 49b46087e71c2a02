"""Files: written whole or not at all, read wherever they are, with their provenance."""
