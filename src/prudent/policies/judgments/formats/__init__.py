"""Judgments in files that other programs load; each module registers a format, as in `prudent.policies.export`."""

from prudent.policies.judgments.formats.base import judgment_formats

__all__ = ["judgment_formats"]
