"""Why an item stands where it stands: the incumbent list beside the new one, in numbers and in words."""

from prudent.policies.explain.candidates import as_column, explain
from prudent.policies.explain.explanation import Candidate, Explanation

__all__ = ["Candidate", "Explanation", "as_column", "explain"]
