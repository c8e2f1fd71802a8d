"""Golden schedules: digests in golden.json by which a change of the simulator shows that it moved no start.

``python -m tests.golden``
    Every discipline on random cases, then the samples that ship and, where they lie beside the project, the public
    logs, under a sensible system of each discipline: names what has other schedules than the file says.
``python -m tests.golden --write``
    Write the file anew, with the revision that was simulated; logs that are not here keep their digests.

Names limit the comparison to what begins so: ``python -m tests.golden easy typed "kth-sp2 hybrid"``. Last come the
disciplines of `generate.SELDOM`, which compile for long.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from hashlib import sha256
from pathlib import Path

import numpy as np

from parsim import Schedule, Workload, simulate
from qconf.config import load
from qconf.history import clean, read
from tests import fuzz, generate
from tests.beside import ROOT, TRACES

FILE = Path(__file__).with_suffix(".json")
FEW = 5  #: seeds of the digest that is compared by `make test`
SEEDS = {"": 60, fuzz.BEGUN: 10, fuzz.NEEDS: 10}  #: of each discipline: empty, with a state, with needs
KINDS = ("disciplines", "logs")
DISCIPLINES = (*fuzz.LISTS, "multiqueue", "alike-multiqueue", "planned", "alike-planned")
SAMPLES = sorted((ROOT / "data").rglob("*.csv.gz"))
#: The logs that ship and those beside the project, each with the name of its configuration.
LOGS = {
    **{path.name.removesuffix(".csv.gz"): (path, path.name.split("-20")[0]) for path in SAMPLES},
    "kth-sp2": (TRACES / "KTH-SP2-1996-2.1-cln.swf.gz", "kth-sp2"),
    "sdsc-sp2": (TRACES / "SDSC-SP2-1998-4.2-cln.swf.gz", "sdsc-sp2"),
    "hpc2n": (TRACES / "HPC2N-2002-2.1-cln.swf.gz", "hpc2n"),
}


def digest(schedules: Iterable[Schedule]) -> str:
    """Return the digest of all that schedules say: instants, partitions and cores there, interruptions, nodes."""
    found = sha256()
    for each in schedules:
        shares = np.array([[job, *each.shares[job]] for job in sorted(each.shares)], dtype=np.int64)
        instants, nodes = (each.submit, each.start, each.end), (each.place, each.node)
        for column in (*instants, each.partition, shares, *each.interruptions, *nodes):
            values = np.empty(0) if column is None else np.asarray(column)
            found.update(f"{values.shape} ".encode() + values.astype("<i8").tobytes())
    return found.hexdigest()[:16]


def few(discipline: str) -> str:
    """Return the digest of the first seeds of a discipline."""
    return digest(fuzz.case(discipline, seed).simulate() for seed in range(FEW))


def full(discipline: str) -> str:
    """Return the digest of all cases of a discipline."""
    kinds = [kind for kind in SEEDS if kind + discipline in fuzz.DISCIPLINES]
    return digest(fuzz.case(kind + discipline, seed).simulate() for kind in kinds for seed in range(SEEDS[kind]))


def logs() -> Iterator[tuple[str, Callable[[], str]]]:
    """Yield what makes the digest of each log that is here under each system."""
    for label, (path, config) in LOGS.items():
        if not path.exists():
            continue
        base = load(ROOT / "configs" / f"{config}.yaml")
        workload, own = clean(read([path]), base).workload(base), base.system()
        yield f"{label} as configured", partial(of_log, workload, own)
        columns = (workload.submit, workload.cores, workload.runtime, workload.walltime)
        routed = Workload(*columns, np.digitize(workload.cores, [2, 9, 33]), workload.user)
        for what, system in fuzz.systems(own.cores):
            yield f"{label} {what}", partial(of_log, routed, system)


def of_log(workload: Workload, system: fuzz.System) -> str:
    """Return the digest of a log's schedule."""
    return digest([simulate(workload, system)])


def everything() -> Iterator[tuple[str, str, Callable[[], object]]]:
    """Yield the kind and name of what the file has, and what makes its digest; what compiles longest comes last."""
    seldom = [name for name in DISCIPLINES if name in generate.SELDOM]
    for name in [name for name in DISCIPLINES if name not in seldom]:
        yield "disciplines", name, partial(both, name)
    yield from (("logs", name, make) for name, make in logs())
    for name in seldom:
        yield "disciplines", name, partial(both, name)


def both(discipline: str) -> list[str]:
    """Return the digests of the first seeds, and of all cases."""
    return [few(discipline), full(discipline)]


def main() -> int:
    """Compare, or write; return 1 if a schedule differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write the file anew")
    parser.add_argument("names", nargs="*", metavar="NAME")
    given = parser.parse_args()
    known = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {each: {} for each in KINDS}
    chosen = tuple(given.names) or ("",)
    if given.write:
        line = ["git", "describe", "--always", "--dirty", "--abbrev=12"]
        revision = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    wrong = count = 0
    for kind, name, make in everything():
        if not name.startswith(chosen):
            continue
        if not known[kind].get(name) and not given.write:
            print(f"{name} has no digest", flush=True)
            continue
        count += 1
        found = make()
        if known[kind].get(name) != found:
            wrong += 1
            print(f"{name} differs from {known.get('revision', 'nothing')}", flush=True)
            known[kind][name] = found
        if given.write:
            order = {"revision": revision, **{each: dict(sorted(known[each].items())) for each in KINDS}}
            FILE.write_text(json.dumps(order, indent=1) + "\n", encoding="utf-8")
    print(f"{wrong} of {count} differ")
    return int(wrong > 0 and not given.write)


if __name__ == "__main__":
    sys.exit(main())
