"""``qconf synth``: generates a workload for trials."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import click

from qconf.cli.options import CORES, PATH, Parsed, json_option, output_option
from qconf.errors import InputError


def _counts(text: str) -> dict[str, int] | None:
    """Return the counts of a text like ``developer=6,greedy=2``; None for other text."""
    found = re.findall(r"(developer|heavy|greedy)=(\d{1,3})(?:,|$)", text)
    counts = {name: int(count) for name, count in found}
    whole = ",".join(f"{name}={count}" for name, count in found) == text and len(counts) == len(found)
    return counts if whole and any(counts.values()) else None


AGENTS = Parsed("counts", _counts, "is no list like developer=6,heavy=4,greedy=2")


def _agents(
    path: Path | None, cores: int | None, days: int, agents: dict[str, int] | None, seed: int, output: Path
) -> Path:
    """Write the log of simulated agents, and return its path."""
    if (path is None) == (cores is None):
        raise click.UsageError("--preset agents needs --config or --cores, not both")
    from parsim import System
    from qconf.cli.progress import progress
    from qconf.config import load as load_config
    from qconf.synth import write_history
    from qconf.synth.agents import USUAL, anywhere, live, routing

    config = None if path is None else load_config(path)
    system = System(cores or 1) if config is None else config.system()
    to_queue, grid = (anywhere, 1) if config is None else (routing(config), config.grid)
    with progress("agents") as step:
        found = live(system, days, seed, agents or USUAL, to_queue, grid, lambda day: step(f"day {day}", day / days))
    if found.log.empty:
        fix = "give more days, other --agents, or queues that take other jobs"
        raise InputError(f"nothing was submitted, and no queue takes {found.refused} requests", file=path, fix=fix)
    if found.refused:
        click.echo(f"{found.refused} requests are in no log, as no queue takes them", err=True)
    return write_history(found.log, output / f"agents-{days}.csv.gz")


@click.command("synth")
@click.option(
    "--preset",
    type=click.Choice(
        ["cray-xc40", "cray-xc40-fall", "ricc", "curie", "curie-4", "metacentrum", "mixed", "stable", "agents"]
    ),
    default="cray-xc40",
    show_default=True,
    help="A machine month by month, that of the paper or one with a large log; one stream at a constant load; or users "
    "who answer to what they see.",
)
@click.option(
    "--months",
    type=click.IntRange(1, 1200),
    help="How many of a machine; default 9 of cray-xc40 and its fall, from July 2015, else 1.",
)
@click.option("--jobs", type=click.IntRange(1, 10**8), help="stable: how many.")
@click.option("--cores", type=CORES, help="stable, agents: size of the machine.")
@click.option("--config", type=PATH, help="agents: the machine and its scheduler, in place of --cores.")
@click.option("--days", type=click.IntRange(1, 3660), help="agents: how many, from a Monday; default 28.")
@click.option("--agents", type=AGENTS, help="agents: how many of each; default developer=6,heavy=4,greedy=2.")
@click.option("--load", type=float, help="Offered load; of every month instead of its own; stable: 0.8.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
@click.option("--table", is_flag=True, help="Print jobs, load and CPU-hour shares per month of a machine.")
@output_option("Directory of the files.", file_okay=False)
@json_option
def command(
    *,
    preset: str,
    months: int | None,
    jobs: int | None,
    cores: int | None,
    config: Path | None,
    days: int | None,
    agents: dict[str, int] | None,
    load: float | None,
    seed: int,
    table: bool,
    output: Path | None,
    as_json: bool,
) -> None:
    """Generate a workload: months like those of a Cray XC40 or of machines with large logs, a stable stream, or agents.

    One gzipped CSV per month, or one for the whole stream; the same seed gives the same bytes.

    Agents look at the machine every ten minutes and submit as they find it: a developer tries small jobs one after the
    other in working hours, and goes home when one waits for an hour; a heavy user has always three long wide jobs in
    the queue; a greedy one fills idle cores for as long as they are idle.
    """
    months_of_machine = preset not in ("stable", "agents")
    if output is None and not (table and months_of_machine):
        raise click.UsageError("give a directory with -o" + (" or add --table" if months_of_machine else ""))
    if preset != "agents" and (config, days, agents) != (None, None, None):
        raise click.UsageError("--config, --days and --agents belong to --preset agents")
    if not months_of_machine and (table or months is not None):
        raise click.UsageError("--months and --table belong to the presets of machines")
    if preset == "agents":
        if jobs is not None or load is not None:
            raise click.UsageError("--jobs and --load belong to other presets: agents submit what they like")
        assert output is not None  # noqa: S101 - checked above
        _say([_agents(config, cores, days or 28, agents, seed, output)], as_json=as_json)
        return
    from qconf import synth

    if preset == "stable":
        if jobs is None or cores is None:
            raise click.UsageError("--preset stable needs --jobs and --cores")
        assert output is not None  # noqa: S101 - checked above
        from qconf.synth.stable import as_history, stable_workload

        workload = stable_workload(jobs, cores, 0.8 if load is None else load, seed)
        _say([synth.write_history(as_history(workload), output / f"stable-{jobs}.csv.gz")], as_json=as_json)
        return
    if jobs is not None or cores is not None:
        raise click.UsageError("--jobs and --cores belong to --preset stable")
    months = len(synth.PRESETS[preset].months) if months is None else months
    paths = [] if output is None else synth.write_months(preset, months, seed, output, load)
    if as_json:
        rows = synth.month_table(preset, months, seed, load).to_dict("index") if table else None
        _say(paths, as_json=True, months=rows)
        return
    _say(paths, as_json=False, err=table)
    if table:
        click.echo(synth.markdown(synth.month_table(preset, months, seed, load)))


def _say(paths: Iterable[Path], *, as_json: bool, err: bool = False, **about: object) -> None:
    """Print the paths that were written."""
    from qconf.text import as_json as to_json

    if as_json:
        click.echo(to_json({"files": [str(path) for path in paths], **about}), nl=False)
        return
    for path in paths:
        click.echo(path, err=err)
