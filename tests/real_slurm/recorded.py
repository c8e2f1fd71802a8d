"""How far the simulator agrees with whole runs of a real Slurm that were recorded elsewhere, with other settings.

    python -m tests.real_slurm.recorded

Each run is simulated twice: as its configuration says, and with `reserve: queues`. Nothing kept events apart there, as
`tests.real_slurm.recording` does: schedules part for good where two lie closer together than Slurm takes to act.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import parsim
from parsim import Workload
from qconf.config import SiteConfig, load
from qconf.history.readers import read
from tests.beside import SHARED

RUNS = SHARED / "slurm" / "real"
#: The configuration of each run, and what Slurm was told beside what was exported then.
CONFIGURED = {
    "H1": ("H-fcfs", "as exported then"),
    "H4": ("H-fcfs", "intervals of a second"),
    "H2": ("H-fcfs", "one reservation, intervals of a second"),
    "A1": ("A-shared", "as exported then"),
    "A2": ("A-shared", "one reservation, intervals of a second"),
    "C1": ("C-part", "as exported then"),
    "D1": ("D-hybrid", "as exported then, promotion each minute"),
}
HEADING = """\
| run | settings | jobs | mean wait, real | simulated | same order | with `reserve: queues` | same order |
|---|---|---|---|---|---|---|---|"""

Column = NDArray[np.int64]


@dataclass(frozen=True)
class Recorded:
    """A run: its configuration, its jobs, and when each started."""

    config: SiteConfig
    workload: Workload
    start: Column

    @classmethod
    def read(cls, name: str, folder: Path = RUNS) -> Recorded:
        """Read the accounting of a run; jobs are sent to queues by their size, as the export did."""
        config = load(folder / f"{CONFIGURED[name][0]}.yaml")
        table = read(folder / f"{name}.sacct", format="sacct").table.sort_values("submit", kind="stable")
        cores, walltime = table["cores"].to_numpy(), table["walltime"].to_numpy()
        admitted = np.array([queue.admits(cores, walltime, config.grid) for queue in config.queues])
        workload = Workload(
            submit=table["submit"].to_numpy(),
            cores=cores,
            runtime=table["runtime"].to_numpy(),
            walltime=walltime,
            queue=admitted.argmax(axis=0),
        )
        return cls(config, workload, table["start"].to_numpy())

    def simulated(self, reserve: str) -> Column:
        """Return when the simulator starts the jobs."""
        return parsim.simulate(self.workload, self.config.replace(reserve=reserve).system()).start

    def wait(self, start: Column) -> float:
        """Mean wait of a schedule."""
        return float(np.mean(start - self.workload.submit))

    def same_order(self, simulated: Column) -> float:
        """Share of the pairs of jobs that do not start in opposite orders."""
        pairs = np.triu_indices(self.start.size, 1)
        real, other = (np.sign(np.subtract.outer(start, start))[pairs] for start in (self.start, simulated))
        return float(np.mean(real * other >= 0))


def rows(folder: Path = RUNS) -> Iterator[str]:
    """Write the row of each run that is there."""
    for name, (_, settings) in CONFIGURED.items():
        run = Recorded.read(name, folder)
        cells = [name, settings, str(run.start.size), f"{run.wait(run.start):.1f}"]
        for reserve in ("cores", "queues"):
            start = run.simulated(reserve)
            cells += [f"{run.wait(start):.1f}", f"{run.same_order(start):.3f}"]
        yield f"| {' | '.join(cells)} |"


def main() -> None:
    """Print the table, or why there is none."""
    wanted = {f"{name}.sacct" for name in CONFIGURED} | {f"{kind}.yaml" for kind, _ in CONFIGURED.values()}
    missing = sorted(str(RUNS / name) for name in wanted if not (RUNS / name).is_file())
    if missing:
        print(f"skipped: no {', '.join(missing[:3])}{' and others' if len(missing) > 3 else ''}")
        return
    print(HEADING)
    for row in rows():
        print(row, flush=True)
    print("two.sacct has no configuration beside it: how its rows are read is tests/qconf/history/test_sacct.py.")


if __name__ == "__main__":
    main()
