"""The mutants, by the part of the package that they change.

Each is a slip that could happen and would harm a user: an index off by one, a comparison that decides ties the other
way, a missing factor, a missing check, state that is not kept up to date, a copy that is not made.
"""

from __future__ import annotations

from benchmarks.mutants.mutant import Mutant
from benchmarks.mutants.table import (
    bits,
    certificates,
    files,
    hash_functions,
    hashers,
    inference,
    metrics,
    modeling,
    near_duplicates,
    promises,
    proofs,
    search,
    solvers,
    stores,
    streams,
    targets,
    ties,
)

AREAS: dict[str, list[Mutant]] = {
    "bits": bits.MUTANTS,
    "search": search.MUTANTS,
    "ties": ties.MUTANTS,
    "metrics": metrics.MUTANTS,
    "solvers": solvers.MUTANTS,
    "certificates": certificates.MUTANTS,
    "modeling": modeling.MUTANTS,
    "inference": inference.MUTANTS,
    "targets": targets.MUTANTS,
    "hash functions": hash_functions.MUTANTS,
    "hashers": hashers.MUTANTS,
    "files": files.MUTANTS,
    "streams": streams.MUTANTS,
    "stores": stores.MUTANTS,
    "near-duplicates": near_duplicates.MUTANTS,
    "promises": promises.MUTANTS,
    "proofs": proofs.MUTANTS,
}
