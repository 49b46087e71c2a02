"""Why an item stands where it stands: the list that was mostly shown beside the new one, in numbers and in words."""

from prudent.policies.explain.base import Candidate, Explanation
from prudent.policies.explain.gathering import explain

__all__ = ["Candidate", "Explanation", "explain"]
