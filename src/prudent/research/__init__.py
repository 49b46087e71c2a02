"""The paper's experiments: protocols in, tables of results and figures out."""
