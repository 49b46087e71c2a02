"""Numerical methods, each with the measurement that justifies it."""
