"""`python -m bench`: Windrow beside its floor and its peers, as ratios inside one run.

Rounds are interleaved and medians compared, because machines are noisy; a run checks that every job
was stored, that none was lost and that none ran twice. Figures are kept in bench/results/.
"""

from __future__ import annotations

import argparse

from bench import convert, crawl, knowledge, report, rounds
from bench.contestant import Contestant, contestants

CONVERSIONS = 7  # rounds, of which one takes a second or two


def main() -> None:
    given = parse()
    chosen = {} if given.only_pages or given.only_knowledge else choose(given)
    results = rounds.run(given, chosen)
    if given.pages and not given.only_knowledge:
        results.pages = crawl.run(given.pages, given.rounds) + convert.run(CONVERSIONS)
    if given.files and not given.only_pages:
        results.knowledge = knowledge.run(given.files, given.chunks, given.rounds)
    print(report.as_text(results))
    if not given.no_save:
        print(f"\nkept in {results.save()}")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("--jobs", type=int, default=50_000, help="jobs of one drain, at most")
    parser.add_argument("--singles", type=int, default=5_000, help="single enqueues")
    parser.add_argument("--pickups", type=int, default=100, help="jobs to an idle worker")
    parser.add_argument("--pages", type=int, default=5_000, help="pages of a crawl; 0: none")
    parser.add_argument("--only-pages", action="store_true", help="crawls and conversion only")
    parser.add_argument("--files", type=int, default=knowledge.FILES, help="ingested; 0: none")
    parser.add_argument("--chunks", type=int, default=knowledge.LARGE, help="of a large index")
    parser.add_argument("--only-knowledge", action="store_true", help="files and searches only")
    parser.add_argument("--in-flight", type=int, default=rounds.IN_FLIGHT)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--store", choices=("postgres", "sqlite", "redis"))
    parser.add_argument(
        "--only", help="contestants, with commas between; the beginning of a name is enough"
    )
    parser.add_argument("--no-peers", action="store_true", help="the floors and Windrow")
    parser.add_argument("--only-drain", action="store_true", help="enqueue and drain, no more")
    parser.add_argument(
        "--waiting",
        type=int,
        nargs="?",
        const=rounds.MILLION,
        default=0,
        help="measure also behind so many waiting jobs (a million, if no number is given)",
    )
    parser.add_argument("--no-save", action="store_true", help="keep no file of the figures")
    return parser.parse_args()


def choose(given: argparse.Namespace) -> dict[str, Contestant]:
    found = contestants()
    if given.store:
        found = {name: one for name, one in found.items() if one.store == given.store}
    if given.no_peers:
        found = {name: one for name, one in found.items() if name.startswith(("floor", "windrow"))}
    if given.only:
        wanted = tuple(given.only.split(","))
        found = {name: one for name, one in found.items() if name.startswith(wanted)}
    return found


if __name__ == "__main__":
    main()
