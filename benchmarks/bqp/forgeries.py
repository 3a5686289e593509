"""Forged proofs: each changes a valid one so that its claim becomes false, or is no longer proven.

A changed dual point that still proves the bound would be a valid proof. So duals are changed by amounts that no slack
covers, and claims are changed by one step of the lattice of values.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import numpy as np

from hashlearn.bqp.proof.check import Lattice, digest, exact_matrix

Content = dict[str, Any]
Generator = np.random.Generator


class Forger:
    """Forgeries of one proof of the problem A."""

    def __init__(self, A: Any, content: Content) -> None:
        self.N, self.exponent = exact_matrix(A)
        self.step = Lattice.of(self.N).step
        self.content = content
        self._kinds = {
            name.removeprefix("_forge_").replace("_", " "): getattr(self, name)
            for name in dir(self)
            if name.startswith("_forge_")
        }

    def forgeries(self, count: int, rng: Generator) -> Iterator[tuple[str, Content]]:
        """``count`` forgeries: all kinds in turn, at random places. Kinds that do not fit this proof are skipped."""
        made = 0
        while made < count:
            for name, forge in self._kinds.items():
                content = copy.deepcopy(self.content)
                if made < count and forge(content, rng) is not False:
                    made += 1
                    yield name, content

    def _leaf(self, content: Content, rng: Generator) -> Content:
        leaves = [node for node in content["nodes"] if "dual" in node]
        return leaves[rng.integers(len(leaves))]["dual"]

    def _cut(self, content: Content, rng: Generator) -> list[int]:
        cuts = self._leaf(content, rng)["cuts"]
        return max(cuts, key=lambda cut: cut[0]) if rng.random() < 0.5 else cuts[rng.integers(len(cuts))]

    def _inner(self, content: Content, rng: Generator) -> int | None:
        places = [k for k, node in enumerate(content["nodes"]) if "branch" in node]
        return int(places[rng.integers(len(places))]) if places else None

    def _subtrees(self, nodes: list[Content], place: int) -> tuple[slice, slice]:
        """Where the nodes below both children of an inner node are."""
        middle = self._end(nodes, place + 1)
        return slice(place + 1, middle), slice(middle, self._end(nodes, middle))

    def _end(self, nodes: list[Content], place: int) -> int:
        """The place after all nodes below ``place``, and itself."""
        n_open = 1
        while n_open:
            n_open += 1 if "branch" in nodes[place] else -1
            place += 1
        return place

    # ---- claims ----

    def _forge_higher_bound(self, content: Content, rng: Generator) -> None:
        content["bound"] += self.step

    def _forge_better_value(self, content: Content, rng: Generator) -> None:
        content["value"] -= self.step
        content["bound"] -= self.step

    def _forge_other_signs(self, content: Content, rng: Generator) -> None:
        self._flip(content, rng)

    def _forge_worse_signs_called_optimal(self, content: Content, rng: Generator) -> None:
        self._flip(content, rng)
        x = np.array(content["x"], dtype=object)
        content["value"] = content["bound"] = int(x @ self.N @ x)

    def _flip(self, content: Content, rng: Generator) -> None:
        x = np.array(content["x"], dtype=object)
        gains = x * (self.N @ x) - np.diag(self.N)
        places = np.flatnonzero(gains != 0)
        i = int(places[rng.integers(len(places))])
        content["x"][i] = -content["x"][i]

    def _forge_sign_zero(self, content: Content, rng: Generator) -> None:
        content["x"][int(rng.integers(len(self.N)))] = 0

    def _forge_value_as_text(self, content: Content, rng: Generator) -> None:
        content["value"] = str(content["value"])

    # ---- the problem and the format ----

    def _forge_digest_of_another_problem(self, content: Content, rng: Generator) -> None:
        other = self.N.copy()
        i, j = rng.choice(len(other), 2, replace=False)
        other[i, j] = other[j, i] = other[i, j] + 1
        content["problem"] = digest(other, self.exponent)

    def _forge_other_version(self, content: Content, rng: Generator) -> None:
        content["version"] = int(rng.integers(2, 100))

    def _forge_other_format(self, content: Content, rng: Generator) -> None:
        content["format"] = "proof"

    def _forge_other_n(self, content: Content, rng: Generator) -> None:
        content["n"] += 1

    def _forge_other_exponent(self, content: Content, rng: Generator) -> None:
        content["exponent"] += 1

    # ---- dual points ----

    def _forge_raised_dual(self, content: Content, rng: Generator) -> None:
        dual = self._leaf(content, rng)
        dual["y"][self._used(dual, rng)] += self._large(dual)

    def _forge_lowered_dual(self, content: Content, rng: Generator) -> None:
        dual = self._leaf(content, rng)
        dual["y"][self._used(dual, rng)] -= self._large(dual)

    def _forge_all_of_y_raised(self, content: Content, rng: Generator) -> None:
        """The bound rises by a step for every variable, if nothing checks the eigenvalue."""
        dual = self._leaf(content, rng)
        dual["y"] = [y + self._large(dual) if y else 0 for y in dual["y"]]
        content["bound"] += self.step

    def _used(self, dual: Content, rng: Generator) -> int:
        places = [k for k, y in enumerate(dual["y"]) if y]
        return places[rng.integers(len(places))]

    def _large(self, dual: Content) -> int:
        """More than any slack: all entries of the problem together."""
        return int(abs(self.N).sum()) * 2 ** max(dual["shift"], 0) // 2 ** max(-dual["shift"], 0)

    def _forge_other_shift(self, content: Content, rng: Generator) -> None:
        self._leaf(content, rng)["shift"] += int(rng.choice([-1, 1]))

    def _forge_y_of_another_length(self, content: Content, rng: Generator) -> None:
        self._leaf(content, rng)["y"].append(0)

    def _forge_negative_multiplier(self, content: Content, rng: Generator) -> None:
        cut = self._cut(content, rng)
        cut[0] = -cut[0]

    def _forge_larger_multiplier(self, content: Content, rng: Generator) -> None:
        dual = self._leaf(content, rng)
        dual["cuts"][int(rng.integers(len(dual["cuts"])))][0] += self._large(dual)

    def _forge_even_cut(self, content: Content, rng: Generator) -> None:
        self._cut(content, rng).pop()

    def _forge_cut_that_repeats_a_variable(self, content: Content, rng: Generator) -> None:
        cut = self._cut(content, rng)
        cut[2] = int(rng.choice([-1, 1])) * cut[1]

    def _forge_cut_outside(self, content: Content, rng: Generator) -> None:
        self._cut(content, rng)[1] = len(self.N) + 1

    def _forge_no_cuts(self, content: Content, rng: Generator) -> None:
        dual = self._leaf(content, rng)
        dual["cuts"] = []

    # ---- the tree ----

    def _forge_no_nodes(self, content: Content, rng: Generator) -> None:
        content["nodes"] = []

    def _forge_enumeration_of_many(self, content: Content, rng: Generator) -> None:
        node = next(node for node in content["nodes"] if "dual" in node)
        del node["dual"]
        node["enumerate"] = True

    def _forge_dropped_node(self, content: Content, rng: Generator) -> bool | None:
        if len(content["nodes"]) == 1:
            return False
        del content["nodes"][int(rng.integers(1, len(content["nodes"])))]
        return None

    def _forge_repeated_node(self, content: Content, rng: Generator) -> bool | None:
        if len(content["nodes"]) == 1:
            return False
        content["nodes"].append(content["nodes"][int(rng.integers(1, len(content["nodes"])))])
        return None

    def _forge_child_in_place_of_its_parent(self, content: Content, rng: Generator) -> bool | None:
        parent = self._inner(content, rng)
        if parent is None:
            return False
        nodes = content["nodes"]
        first, second = self._subtrees(nodes, parent)
        nodes[parent : second.stop] = nodes[first]
        return None

    def _forge_leaf_moved(self, content: Content, rng: Generator) -> bool | None:
        """A leaf to the end, so that all nodes after it have another place in the tree."""
        leaves = [k for k, node in enumerate(content["nodes"]) if "dual" in node]
        if len(leaves) < 3:
            return False
        content["nodes"].append(content["nodes"].pop(leaves[rng.integers(len(leaves) - 2)]))
        return None

    def _forge_exchanged_leaves(self, content: Content, rng: Generator) -> bool | None:
        leaves = [node for node in content["nodes"] if "dual" in node]
        if len(leaves) < 2:
            return False
        a, b = (leaves[k] for k in rng.choice(len(leaves), 2, replace=False))
        a["dual"], b["dual"] = b["dual"], a["dual"]
        return None

    def _forge_other_branch(self, content: Content, rng: Generator) -> bool | None:
        place = self._inner(content, rng)
        if place is None:
            return False
        branch = content["nodes"][place]["branch"]
        branch[1] = int(rng.choice([v for v in range(1, len(self.N) + 1) if v not in branch]))
        return None

    def _forge_branch_on_one_variable(self, content: Content, rng: Generator) -> bool | None:
        place = self._inner(content, rng)
        if place is None:
            return False
        branch = content["nodes"][place]["branch"]
        branch[1] = branch[0]
        return None

    def _forge_exchanged_signs(self, content: Content, rng: Generator) -> bool | None:
        place = self._inner(content, rng)
        if place is None:
            return False
        nodes = content["nodes"]
        first, second = self._subtrees(nodes, place)
        nodes[first.start : second.stop] = nodes[second] + nodes[first]
        return None

    def _forge_equal_signs(self, content: Content, rng: Generator) -> bool | None:
        place = self._inner(content, rng)
        if place is None:
            return False
        nodes = content["nodes"]
        first, second = self._subtrees(nodes, place)
        nodes[second] = nodes[first]
        return None
