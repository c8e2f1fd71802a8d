"""How often `qconf tune` recommends a queue configuration on generated months, and the gain of the best one.

Each month has another seed, and one of several offered loads. Finished months are stored in the folder `work`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path

import click

from qconf.history import clean, read
from qconf.parallel import parallel_map
from qconf.recommend import Recommendation, recommend
from qconf.text import markdown_table, write_whole
from studies import output
from studies.output import DOCS, REPORTS, ROOT, fingerprint, hash_of, load, paragraph, run, save
from studies.paper.pieces import GENERATED, Generated, Piece
from studies.paper.plan import CRAY

LOADS = (0.65, 0.85, 1.05)
PRESET = "cray-xc40"


@dataclass(frozen=True)
class Verdict:
    """The verdict of `qconf tune` for a month; gains are medians over the resamples, None if there is no candidate."""

    load: float
    seed: int
    winner: str  #: ``current`` for KEEP
    of_queues: bool  #: whether the recommended configuration changes queues
    best: str | None  #: strategy of the best queue configuration
    certain: bool  #: whether that configuration gains beyond chance
    gain: float | None  #: of that configuration over the current one
    cost: float | None  #: its gain over the recommendation, usually negative


def month(offered: float, seed: int, work: Path) -> Verdict:
    """Tune on a generated month; a stored verdict is read if it was found with the same code."""
    stored = work / f"queues-{offered:g}-{seed}.json"
    key = fingerprint([hash_of(ROOT / "parsim", ROOT / "qconf"), offered, seed])
    if (kept := load(stored, key)) is not None:
        return Verdict(**kept["month"])
    piece = Piece("queues", GENERATED, CRAY, 1, made_by=Generated(PRESET, seed, offered))
    base = piece.base()
    found = of(recommend(clean(read([piece.log(work, work)]), base), base), offered, seed)
    save(stored, key, {"month": asdict(found)})
    return found


def of(found: Recommendation, offered: float, seed: int) -> Verdict:
    """Return the verdict about queues of a recommendation."""
    best = found.queues
    gained = None if best is None else best.row.bootstrap
    return Verdict(
        offered,
        seed,
        found.winner,
        found.recommends_queues,
        None if best is None else best.row.name,
        gained is not None and gained.certain,
        None if gained is None else gained.expected,
        None if best is None or best.step is None else best.step.expected,
    )


def page(months: Sequence[Verdict], name: str) -> str:
    """Return the page as Markdown."""
    titles = ["load", "months", "CHANGE", "of queues", "a queue configuration gains", "beyond chance"]
    titles += ["its gain, %", "over the recommendation, %"]
    rows = []
    for offered in sorted({each.load for each in months}):
        own = [each for each in months if each.load == offered]
        kinds = [[each.winner != "current", each.of_queues, each.best is not None, each.certain] for each in own]
        counts = [len(own), *map(sum, zip(*kinds, strict=True))]
        rows.append([f"{offered:g}", *map(str, counts), _range(each.gain for each in own), _range(e.cost for e in own)])
    return TEXT.format(command=name, about=paragraph(ABOUT), table=markdown_table(titles, rows, left=0))


def _range(values: Iterable[float | None]) -> str:
    known = sorted(100 * value for value in values if value is not None)
    return f"{known[0]:+.0f} to {known[-1]:+.0f}" if known else "-"


ABOUT = f"""\
Months of `qconf synth --preset {PRESET}`, each of another seed, at three offered loads, with the strategies of
`qconf tune`. The best queue configuration is [what it
shows](../manual/results.md#the-best-queue-configuration) beside what it recommends. Gains are the least and the
greatest of the months' medians over the resamples.
"""
TEXT = """# How often queues are the answer

Written by

    {command}

{about}
{table}
"""


@click.command("studies.queues")
@click.option("--count", default=3, show_default=True, type=click.IntRange(1), help="Months at each load.")
@output.folder("--out", DOCS, "Folder of queues.md.")
@output.folder("--work", REPORTS / "queues", "Where months are kept.")
@output.workers("Processes.")
def command(*, count: int, out: Path, work: Path, workers: int) -> None:
    """Tune on generated months, and write queues.md."""
    work.mkdir(parents=True, exist_ok=True)
    tasks = [(offered, seed, work) for seed, offered in product(range(count), LOADS)]
    found = parallel_map(workers, month, tasks, processes=True)
    write_whole(out / "queues.md", page(found, f"python -m studies.queues --count {count}"))
    click.echo(out / "queues.md")


if __name__ == "__main__":
    run(command)
