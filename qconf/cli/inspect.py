"""``qconf inspect``: shows the jobs of a history, and what was dropped and why."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from qconf.cli.source import READING, Source, format_option, source_options

if TYPE_CHECKING:
    from rich.table import Table

COLUMNS = ("jobs", "users", "CPU h", "share %", "cores min", "median", "p90", "max")
TIMES = ("run time median", "walltime median", "walltime max", "run time / walltime")


@click.command("inspect")
@source_options("history", "config_path", "cores", "month", "start", "end", *READING)
@format_option("Format of the log.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of tables.")
def command(source: Source, kind: str, as_json: bool) -> None:
    """Show what is in a history: jobs, load, queues, walltimes, and what was dropped and why."""
    from qconf.history import clean
    from qconf.history.inspect import overview
    from qconf.history.records import most_at_once

    records = source.records(kind)
    known = source.config_path is not None or source.cores is not None or records.machine_cores is not None
    if not known and not most_at_once(records.table):  # the widest job is the least that the machine can be
        source = replace(source, cores=max(1, int(records.table["cores"].max())) if len(records.table) else 1)
    config = source.config(records)
    found = overview(source.cut(clean(records, config)), config) | {"most_at_once": most_at_once(records.table) or None}
    found |= {"format": records.format, "merged_lines": dict(records.merged), "machine_known": known}
    if not known and found["most_at_once"] is None:
        found |= {"machine_cores": None, "offered_load": None}
    if as_json:
        import json

        click.echo(json.dumps(found, indent=2, allow_nan=False))
        return
    _print(found)


def _print(found: dict[str, Any]) -> None:
    from qconf.report.layout import InertTable, console, print_table

    to = console()
    load = "unknown" if found["offered_load"] is None else f"{found['offered_load']:.3f}"
    machine = f"{found['machine_cores']} cores" if found["machine_cores"] else "size unknown (give --cores)"
    if found["most_at_once"]:
        machine += f", {found['most_at_once']} ran at once"
    near = found["walltime_accuracy"]
    points = ", ".join(f"{name} {near[name]:.2f}" for name in ("p10", "p25", "p50", "p75", "p90"))
    dropped = sum(found["dropped"].values())
    outside = f" + {found['outside_period']} outside the period" if found["outside_period"] else ""
    plain: dict[str, Any] = {"show_header": False, "box": None, "padding": (0, 2, 0, 0), "pad_edge": False}
    facts = InertTable(**plain)
    facts.add_column(no_wrap=True)
    facts.add_column(overflow="fold")
    for name, value in (
        ("log", f"{found['format']}, {len(found['sources'])} file{'s' * (len(found['sources']) != 1)}"),
        ("records", f"{found['read']} read = {found['jobs']} jobs + {dropped} dropped{outside}"),
        ("submitted", f"{found['first_submit']} to {found['last_submit']}, {found['days']:.1f} days"),
        ("machine", machine),
        ("offered load", load),
        ("CPU hours", f"{found['cpu_hours']:.0f}"),
        *_gpus(found.get("gpus")),
        ("users", str(found["users"])),
        (
            "run time / walltime",
            f"mean {near['mean']:.2f}, {points}; {100 * near['at_limit']:.1f} % ran to their limit",
        ),
    ):
        facts.add_row(name, value)
    to.print(facts)
    gpus = [_of_gpus(found["gpus"])] if "gpus" in found else []
    for table in (_queues(found["queues"]), *gpus, _times(found["queues"])):
        print_table(to, table)
    where = " in the whole log" if found["outside_period"] else ""
    for title, counts in (
        ("dropped" + where, found["dropped"]),
        ("changed" + where, found["changed"]),
        ("lines that only add to a job", found["merged_lines"]),
    ):
        if counts:
            table = InertTable(title=title, title_justify="left", **plain)
            for reason, count in counts.items():
                table.add_row(f"{count:>8}", reason)
            print_table(to, table)


def _gpus(found: dict[str, Any] | None) -> Iterator[tuple[str, str]]:
    """Yield (title, text) for the use of GPUs, and for the bottleneck resource."""
    from qconf.text import TERMS

    if found is None:
        return
    load = "" if found["offered_load"] is None else f", offered load {found['offered_load']:.3f}"
    text = f"{found['gpu_hours']:.0f}{load}; {found['jobs']} jobs have GPUs"
    if found["machine_gpus"] is not None:
        text += f", {found['others_on_gpu_nodes']} others may use nodes with GPUs"
    yield "GPU hours", text
    if found["bottleneck"] is not None:
        yield "bottleneck", TERMS[found["bottleneck"]][0]


def _of_gpus(found: dict[str, Any]) -> Table:
    from qconf.report.layout import new_table

    rows = [
        (
            kind,
            each["name"],
            f"{each.get('gpus') or ''}",
            f"{each['jobs']}",
            f"{each['gpu_hours']:.0f}",
            f"{100 * each['share']:.1f}",
        )
        for kind, of in (("type", "types"), ("queue", "queues"), ("user", "users"))
        for each in found[of]
        if each["jobs"] or of == "types"
    ]
    return new_table(("GPUs by", ""), ("there", "jobs", "GPU h", "share %"), rows, title="GPUs")


def _queues(queues: list[dict[str, Any]]) -> Table:
    from qconf.report.layout import new_table

    rows = (
        [queue["queue"], str(queue["jobs"]), str(queue["users"])]
        + [f"{queue['cpu_hours']:.0f}", f"{100 * queue['share']:.1f}"]
        + [f"{queue['cores'][key]:.0f}" for key in ("min", "median", "p90", "max") if queue["jobs"]]
        for queue in queues
    )
    return new_table(("queue",), COLUMNS, rows, title="queues: jobs and cores")


def _times(queues: list[dict[str, Any]]) -> Table:
    from qconf.config import format_clock
    from qconf.report.layout import new_table

    rows = []
    for queue in queues:
        if queue["jobs"]:
            times = (queue["runtime"]["median"], queue["walltime"]["median"], queue["walltime"]["max"])
            shown = [format_clock(round(seconds)).removeprefix("0") for seconds in times]
            rows.append([queue["queue"], *shown, f"{queue['walltime_accuracy']['p50']:.2f}"])
    return new_table(("queue",), TIMES, rows, title="queues: times; the last is the median over jobs")
