"""Codes that keep the ranking of float neighbors, learned without labels or with some."""

from hashlearn.hashers.ranking.encoder import Check, RankingReport
from hashlearn.hashers.ranking.estimator import ENCODERS, RankingHasher

__all__ = ["ENCODERS", "Check", "RankingHasher", "RankingReport"]
