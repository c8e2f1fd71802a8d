"""`qconf synth`: a workload to try things on."""

from __future__ import annotations

from pathlib import Path

import click

from qconf.cli.options import CORES, output_option


@click.command("synth")
@click.option(
    "--preset",
    type=click.Choice(["cray-xc40", "ricc", "curie", "curie-4", "metacentrum", "stable"]),
    default="cray-xc40",
    show_default=True,
    help="A machine month by month, that of the paper or one with a large log, or one stream at a constant load.",
)
@click.option(
    "--months",
    type=click.IntRange(1, 1200),
    help="How many of a machine; default 9 of cray-xc40, from July 2015, else 1.",
)
@click.option("--jobs", type=click.IntRange(1, 10**8), help="stable: how many.")
@click.option("--cores", type=CORES, help="stable: size of the machine.")
@click.option("--load", type=float, help="Offered load; of every month instead of its own; stable: 0.8.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
@click.option("--table", is_flag=True, help="Print jobs, load and CPU-hour shares per month of a machine.")
@output_option("Directory of the files.", file_okay=False)
def command(
    *,
    preset: str,
    months: int | None,
    jobs: int | None,
    cores: int | None,
    load: float | None,
    seed: int,
    table: bool,
    output: Path | None,
) -> None:
    """Generate a workload: months like those of a Cray XC40 or of machines with large logs, or a stable stream.

    One gzipped CSV per month, or one for the whole stream; the same seed gives the same bytes.
    """
    if output is None and not (table and preset != "stable"):
        raise click.UsageError("give a directory with -o" + (" or add --table" if preset != "stable" else ""))
    from qconf import synth

    if preset == "stable":
        if jobs is None or cores is None:
            raise click.UsageError("--preset stable needs --jobs and --cores")
        if table or months is not None:
            raise click.UsageError("--months and --table belong to the presets of machines")
        assert output is not None  # noqa: S101 - checked above
        from qconf.synth.stable import as_history, stable_workload

        workload = stable_workload(jobs, cores, 0.8 if load is None else load, seed)
        click.echo(synth.write_history(as_history(workload), output / f"stable-{jobs}.csv.gz"))
        return
    if jobs is not None or cores is not None:
        raise click.UsageError("--jobs and --cores belong to --preset stable")
    months = (9 if preset == "cray-xc40" else 1) if months is None else months
    if output is not None:
        for path in synth.write_months(preset, months, seed, output, load):
            click.echo(path, err=table)
    if table:
        click.echo(synth.markdown(synth.month_table(preset, months, seed, load)))
