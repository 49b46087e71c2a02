"""Relevance judgments from clicks: grades with an estimate, its interval and a confidence."""
