"""Codes that keep the ranking of float neighbors, learned without labels or with some."""

from hashlearn.hashers.ranking.estimator import ENCODERS, RankingHasher
from hashlearn.hashers.ranking.training import Check, RankingReport

__all__ = ["ENCODERS", "Check", "RankingHasher", "RankingReport"]
