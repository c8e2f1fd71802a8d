"""``qconf predict``: when the jobs that wait now will start."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from qconf.cli.options import Number

if TYPE_CHECKING:
    from qconf.config import SiteConfig
    from qconf.prediction.results import Prediction
    from qconf.snapshot import Job

FOLDER = click.Path(path_type=Path, exists=True, file_okay=False)
FILE = click.Path(path_type=Path, exists=True, dir_okay=False)


@click.command("predict")
@click.option("--snapshot", "folder", type=FOLDER, required=True, help="Folder with what the batch system printed.")
@click.option("--config", "config_path", type=FILE, help="Configuration; by default what the snapshot tells.")
@click.option("--history", type=FILE, multiple=True, help="Log to learn run times from; repeat for several files.")
@click.option("--what-if", "what_if", multiple=True, metavar="cores=64,walltime=4h", help="A job not yet submitted.")
@click.option("--runs", type=Number(1, 100_000), default=300, show_default=True, help="Simulations for intervals.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the run times that are drawn.")
@click.option("--timezone", default="UTC", show_default=True, help="Of times without an offset.")
@click.option("--workers", type=Number(1, 1024), default=1, show_default=True, help="Simulations at a time.")
@click.option("--watch", type=Number(1, 86400), metavar="SECONDS", help="Read the folder again every so often.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of tables.")
def command(folder: Path, watch: float | None, **given: Any) -> None:  # noqa: ANN401 - the other options
    """Predict when each waiting job starts, and say which idle cores a new job would get now.

    The plan takes every job for as long as its walltime. With a history run times are those of jobs alike in it, and
    each start has intervals, of 80 and of 95 of 100 simulations.
    """
    import time

    while True:
        _once(folder, **given)
        if watch is None:
            return
        time.sleep(watch)


def _once(folder: Path, *, as_json: bool, **given: Any) -> None:  # noqa: ANN401 - the other options
    from qconf.cli.messages import warn

    found = _predict(folder, **given)
    if as_json:
        import json

        click.echo(json.dumps(found.document(), indent=2, allow_nan=False))
        return
    from qconf.report.layout import console
    from qconf.report.prediction import tables

    warn(found.ahead.warnings)
    to = console()
    for each in tables(found, given["timezone"], to.width):
        to.print(each)


def _predict(
    folder: Path,
    *,
    config_path: Path | None,
    history: tuple[Path, ...],
    what_if: tuple[str, ...],
    runs: float,
    seed: int,
    timezone: str,
    workers: float,
) -> Prediction:
    from qconf.history.times import zone
    from qconf.prediction.results import predict
    from qconf.snapshot import read_snapshot

    where = zone(timezone)
    snapshot = read_snapshot(folder, where)
    config = _config(folder, config_path, snapshot.cores)
    extra = [_job(text, number, snapshot.now) for number, text in enumerate(what_if, start=1)]
    past = None
    if history:
        from qconf.history import clean, read

        past = clean(read(list(history)), config)
    return predict(snapshot, config, history=past, extra=extra, runs=int(runs), seed=seed, workers=int(workers))


def _config(folder: Path, path: Path | None, cores: int | None) -> SiteConfig:
    """Read the configuration, or derive it from what the folder has of the server."""
    from qconf.config import MachineConfig, QueueConfig, SiteConfig, load
    from qconf.errors import InputError

    if path is not None:
        return load(path)
    server = folder / "print_server.txt"
    if server.exists():
        from qconf.export import exporter

        scheduler = folder / "sched_config.txt"
        options = {"scheduler": str(scheduler)} if scheduler.exists() else {}
        return exporter("pbs").of(**options).read(server, cores=cores).config
    if cores is None:
        raise InputError(
            "tells neither queues nor cores", file=folder, fix="give --config, or the nodes of pbsnodes or sinfo"
        )
    return SiteConfig(machine=MachineConfig(cores=cores), queues=(QueueConfig(name="all"),))


def _job(text: str, number: int, now: int) -> Job:
    """Read a job like cores=64,walltime=4h."""
    from qconf.config import parse_duration
    from qconf.snapshot import Job

    fields = dict(part.partition("=")[::2] for part in text.replace(" ", "").split(","))
    try:
        cores, walltime = int(fields.pop("cores")), parse_duration(fields.pop("walltime"))
        queue, user = fields.pop("queue", ""), fields.pop("user", "")
    except (KeyError, ValueError) as error:
        raise click.BadParameter(f"{text}: {error}; write cores=64,walltime=4h", param_hint="--what-if") from error
    if fields or cores < 1:
        raise click.BadParameter(f"{text}: known are cores, walltime, queue, user", param_hint="--what-if")
    return Job(f"what-if {number}", user, "", queue, cores, walltime, now)
