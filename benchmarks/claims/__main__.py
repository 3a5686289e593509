"""The command line of `benchmarks.claims`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks import claims as package
from benchmarks.claims.pages import Claim, claims_of, pages_of, rendered, unused
from benchmarks.claims.stored import ClaimError, Stored, read_all

ROOT = Path(__file__).parents[2]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.claims",
        description=package.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    action = parser.add_mutually_exclusive_group()
    action.add_argument("--write", action="store_true", help="write the stored figures into the pages")
    action.add_argument("--check", action="store_true", help="end with 1 if a page and a stored result differ")
    parser.add_argument("--root", type=Path, default=ROOT, help="the checkout whose pages are read")
    options = parser.parse_args(arguments)
    try:
        results = read_all(options.root)
        found = {page: claims_of(page, options.root, results) for page in pages_of(options.root)}
    except ClaimError as reason:
        print(reason, file=sys.stderr)
        return 1
    every = [claim for claims in found.values() for claim in claims]
    if options.write:
        return _write(found)
    if options.check:
        return _check(every, results)
    return _list(every, results)


def _write(found: dict[Path, list[Claim]]) -> int:
    for page, claims in found.items():
        text = page.read_text("utf-8")
        new = rendered(text, claims)
        if new != text:
            page.write_text(new, encoding="utf-8")
            print(f"{page.name}: {sum(claim.shown != claim.stored for claim in claims)} of {len(claims)} marks changed")
    return 0


def _check(claims: list[Claim], results: dict[str, Stored]) -> int:
    lines = [line for claim in claims for line in claim.differences()] + unused(claims, results)
    for line in lines:
        print(line, file=sys.stderr)
    if lines:
        print("python -m benchmarks.claims --write renders the pages from docs/results", file=sys.stderr)
    return int(bool(lines))


def _list(claims: list[Claim], results: dict[str, Stored]) -> int:
    for claim in claims:
        result = claim.result
        print(f"{claim.page}:{claim.line}: {claim.figure}  ({claim.reference})")
        command = result.command or "NO COMMAND"
        more = ["transcribed"] * result.transcribed + [result.note] * bool(result.note)
        print(f"    {command}  [{'; '.join([f'{result.commit}, {result.date}, {result.machine}', *more])}]")
    shown = sum(claim.n_figures for claim in claims)
    without = sum(claim.n_figures for claim in claims if claim.result.command is None)
    pages = len({claim.page for claim in claims})
    print(f"\n{shown:,} figures in {len(claims)} marks on {pages} pages, from {len(results)} stored results.")
    print(f"{without} of these figures have no command.")
    copied = [result for result in results.values() if result.transcribed]
    print(
        f"{len(copied)} of the stored results were transcribed from pages; their commit and date are those of the line."
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
