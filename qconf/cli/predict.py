"""``qconf predict``: predicts when waiting jobs will start."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from qconf.cli.options import PATH, Number

if TYPE_CHECKING:
    from qconf.config import SiteConfig
    from qconf.history import History
    from qconf.prediction.results import Prediction
    from qconf.report.prediction import Loaded
    from qconf.snapshot import Job, Snapshot

PAGE = click.Path(path_type=Path, dir_okay=False)


@click.command("predict")
@click.option("--snapshot", "folder", type=PATH, required=True, help="Folder with what the batch system printed.")
@click.option("--config", "config_path", type=PATH, help="Configuration; by default what the snapshot tells.")
@click.option("--history", type=PATH, multiple=True, help="Log to learn run times from; repeat for several files.")
@click.option("--what-if", "what_if", multiple=True, metavar="cores=64,walltime=4h", help="A job not yet submitted.")
@click.option("--then", type=PATH, metavar="RUN", help="Also the days after a recommendation of qconf tune is loaded.")
@click.option("--days", type=click.IntRange(1, 14), default=7, show_default=True, help="How many of them.")
@click.option(
    "--runs", type=click.IntRange(1, 100_000), default=300, show_default=True, help="Simulations for intervals."
)
@click.option(
    "--instants",
    type=click.IntRange(0, 10_000),
    default=60,
    show_default=True,
    help="Earlier instants of the log that are predicted anew, to widen intervals until they hold.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Of the run times that are drawn.")
@click.option("--timezone", help="Of times without an offset.  [default: UTC]")
@click.option("--workers", type=click.IntRange(1, 1024), default=2, show_default=True, help="Simulations at a time.")
@click.option("--watch", type=Number(1, 86400), metavar="SECONDS", help="Read the folder again every so often.")
@click.option("--html", "page", type=PAGE, help="Write a page with a Gantt chart, too.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of tables.")
def command(folder: Path, watch: float | None, **given: Any) -> None:  # noqa: ANN401 - the other options
    """Predict when each waiting job starts, and say which idle cores a new job would get now.

    The plan takes every job for as long as its walltime. With a history run times are those of jobs alike in it, and
    each start has intervals, of 80 and of 95 of 100 starts.
    """
    import time

    from qconf.errors import QconfError

    query = Query(folder, **given)
    while True:
        try:
            query.show()
        except QconfError as error:
            if watch is None:
                raise
            click.echo(f"error: {error}", err=True)  # the next snapshot may be complete
        if watch is None:
            return
        time.sleep(watch)


@dataclass
class Query:
    """The options of the command; the log is read once for all repetitions."""

    folder: Path
    config_path: Path | None
    history: tuple[Path, ...]
    what_if: tuple[str, ...]
    then: Path | None
    days: int
    runs: int
    instants: int
    seed: int
    timezone: str | None
    workers: int
    page: Path | None
    as_json: bool
    past: History | None = None

    @property
    def zone(self) -> str:
        """The zone of the snapshot."""
        return self.timezone or "UTC"

    def show(self) -> None:
        """Predict, then print or write the prediction."""
        found, loaded = self._predict()
        if self.page is not None:
            from qconf.report.prediction import render_prediction
            from qconf.text import write_whole

            write_whole(self.page, render_prediction(found, self.zone, loaded))
        if self.as_json:
            import json

            document = found.document() | ({} if loaded is None else {"then": loaded.document()})
            click.echo(json.dumps(document, indent=2, allow_nan=False))
            return
        from qconf.cli.messages import warn
        from qconf.report.layout import console
        from qconf.report.prediction import tables

        warn(found.ahead.warnings)
        to = console()
        for each in tables(found, self.zone, to.width, loaded):
            to.print(each)
        if self.page is not None:
            click.echo(str(self.page))

    def _predict(self) -> tuple[Prediction, Loaded | None]:
        from qconf.prediction.results import predict
        from qconf.snapshot import read_snapshot

        snapshot = read_snapshot(self.folder, self.zone)
        config = _config(self.folder, self.config_path, snapshot)
        extra = [_job(text, number, snapshot.now) for number, text in enumerate(self.what_if, start=1)]
        if self.history and self.past is None:
            from qconf.cli.source import Source
            from qconf.history import clean

            self.past = clean(Source(self.history, site=config, timezone=self.timezone).records(), config)
        more = {"seed": self.seed, "workers": self.workers}
        about = {"runs": self.runs, "instants": self.instants, **more}
        found = predict(snapshot, config, history=self.past, extra=extra, **about)
        return found, None if self.then is None else self._loaded(snapshot, config, more)

    def _loaded(self, snapshot: Snapshot, config: SiteConfig, more: dict[str, int]) -> Loaded:
        from qconf.errors import InputError
        from qconf.prediction.loading import loading
        from qconf.report.prediction import Loaded
        from qconf.report.recorded import promised

        if self.past is None or self.then is None:
            raise click.UsageError("--then needs --history: which jobs come")
        promise = promised(self.then)
        if promise.after.machine.cores != config.machine.cores:
            raise InputError(
                f"is of a machine of {promise.after.machine.cores} cores, this one has {config.machine.cores}",
                file=self.then,
                field="--then",
                fix="give a run of qconf tune of this machine",
            )
        more |= {"days": self.days}
        return Loaded(promise, loading(snapshot, config, promise.after, self.past, promise.objective, **more))


def _config(folder: Path, path: Path | None, snapshot: Snapshot) -> SiteConfig:
    """Return the configuration, read from a file or derived from the server's state in the folder."""
    from qconf.config import MachineConfig, QueueConfig, SiteConfig, load
    from qconf.errors import InputError

    if path is not None:
        return load(path)
    server, cores = folder / "print_server.txt", snapshot.cores
    if server.exists() or snapshot.server:
        from tempfile import TemporaryDirectory

        from qconf.export import exporter

        scheduler = folder / "sched_config.txt"
        options = {"scheduler": str(scheduler)} if scheduler.exists() else {}
        with TemporaryDirectory() as scratch:
            if not server.exists():
                server = Path(scratch, "qstat")
                server.write_text(snapshot.server, encoding="utf-8")
            return exporter("pbs").of(**options).read(server, cores=cores).config
    if cores is None:
        raise InputError(
            "tells neither queues nor cores", file=folder, fix="give --config, or the nodes of pbsnodes or sinfo"
        )
    return SiteConfig(machine=MachineConfig(cores=cores), queues=(QueueConfig(name="all"),))


def _job(text: str, number: int, now: int) -> Job:
    """Return the job of a text like cores=64,walltime=4h."""
    from qconf.config import parse_duration
    from qconf.snapshot import Job

    fields = dict(part.partition("=")[::2] for part in text.replace(" ", "").split(","))
    width, limit, queue, user, name = (fields.pop(key, "") for key in ("cores", "walltime", "queue", "user", "name"))
    try:
        cores, walltime = (int(width) if width.isdecimal() else 0), parse_duration(limit)
    except ValueError as error:
        message = f"{text}: walltime: {error}; write cores=64,walltime=4h"
        raise click.BadParameter(message, param_hint="--what-if") from error
    if fields:
        message = f"{text}: no {next(iter(fields))}; known are cores, walltime, queue, user, name"
        raise click.BadParameter(message, param_hint="--what-if")
    if cores < 1:
        raise click.BadParameter(
            f"{text}: a job has one core at least, like cores=64,walltime=4h", param_hint="--what-if"
        )
    return Job(f"what-if {number}", user, name, queue, cores, walltime, now)
