"""Golden schedules: compare the simulator's schedules with the digests in golden.json.

``python -m tests.golden``
    Simulate random cases of every discipline, then the packaged samples and the public logs beside the project under a
    typical system of each discipline; list those whose digest differs.
``python -m tests.golden --write``
    Rewrite the file, with the revision; logs that are not here keep their digests.

Arguments select by the beginning of the name: ``python -m tests.golden easy typed "kth-sp2 hybrid"``. Disciplines of
`generate.SELDOM` come last, since they compile long.
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
FEW = 5  #: seeds of the digest in `make test`
SEEDS = {"": 60, fuzz.BEGUN: 10, fuzz.NEEDS: 10}  #: seeds of the full digest, by prefix of the discipline
KINDS = ("disciplines", "logs")
DISCIPLINES = (*fuzz.LISTS, "multiqueue", "alike-multiqueue", "planned", "alike-planned")
SAMPLES = sorted((ROOT / "data").rglob("*.csv.gz"))
#: Packaged logs and those beside the project, each with the name of its configuration.
LOGS = {
    **{path.name.removesuffix(".csv.gz"): (path, path.name.split("-20")[0]) for path in SAMPLES},
    "kth-sp2": (TRACES / "KTH-SP2-1996-2.1-cln.swf.gz", "kth-sp2"),
    "sdsc-sp2": (TRACES / "SDSC-SP2-1998-4.2-cln.swf.gz", "sdsc-sp2"),
    "hpc2n": (TRACES / "HPC2N-2002-2.1-cln.swf.gz", "hpc2n"),
}


def digest(schedules: Iterable[Schedule]) -> str:
    """Return a digest of schedules: submits, starts, ends, partitions, cores, interruptions and nodes."""
    found = sha256()
    for each in schedules:
        shares = np.array([[job, *each.shares[job]] for job in sorted(each.shares)], dtype=np.int64)
        instants, nodes = (each.submit, each.start, each.end), (each.place, each.node)
        for column in (*instants, each.partition, shares, *each.interruptions, *nodes):
            values = np.empty(0) if column is None else np.asarray(column)
            found.update(f"{values.shape} ".encode() + values.astype("<i8").tobytes())
    return found.hexdigest()[:16]


def few(discipline: str) -> str:
    """Return the digest of the first `FEW` seeds of a discipline."""
    return digest(fuzz.case(discipline, seed).simulate() for seed in range(FEW))


def full(discipline: str) -> str:
    """Return the digest of all `SEEDS` of a discipline."""
    kinds = [kind for kind in SEEDS if kind + discipline in fuzz.DISCIPLINES]
    return digest(fuzz.case(kind + discipline, seed).simulate() for kind in kinds for seed in range(SEEDS[kind]))


def logs() -> Iterator[tuple[str, Callable[[], str]]]:
    """Yield name and digest function of each existing log under each system."""
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
    """Yield kind, name and digest function of each entry; those that compile long come last."""
    seldom = [name for name in DISCIPLINES if name in generate.SELDOM]
    for name in [name for name in DISCIPLINES if name not in seldom]:
        yield "disciplines", name, partial(both, name)
    yield from (("logs", name, make) for name, make in logs())
    for name in seldom:
        yield "disciplines", name, partial(both, name)


def both(discipline: str) -> list[str]:
    """Return the digests `few` and `full`."""
    return [few(discipline), full(discipline)]


def main() -> int:
    """Compare or write the digests; return 1 if one differs."""
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
