"""The mutants of what users rely on without being able to check it: certificates, ties, metrics, promises and codes.

Each is a slip that could happen and would harm a user: an index off by one, a comparison that decides ties the other
way, a missing factor, a missing check, state that is not kept up to date, a copy that is not made.
"""

from __future__ import annotations

from benchmarks.mutants.mutant import Mutant
from benchmarks.mutants.table import bits, certificates, metrics, near_duplicates, promises, proofs, ties

AREAS: dict[str, list[Mutant]] = {
    "bits": bits.MUTANTS,
    "ties": ties.MUTANTS,
    "metrics": metrics.MUTANTS,
    "certificates": certificates.MUTANTS,
    "near-duplicates": near_duplicates.MUTANTS,
    "promises": promises.MUTANTS,
    "proofs": proofs.MUTANTS,
}
