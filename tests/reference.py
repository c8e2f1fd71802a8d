"""Generate the reference pages from the code: ``python -m tests.reference``, or ``make reference``."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import click

from parsim.metrics.nodes import RESOURCE_METRICS
from qconf.cli import qconf
from qconf.cli.settings import settings_help
from qconf.report.columns import COLUMNS
from qconf.strategies import Step, registry
from qconf.text import markdown_table

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "reference"
WIDTH = 96
SHARED = 3  #: an option with the same help in this many commands is listed once for all
COMMANDS_HEAD = """# Commands

The help of every command, written by `make reference`; what several have is [at the
end](#options-that-several-commands-have). Bad input gets one message that names file, line, field,
value and what to do, and exit code 1; a wrong option gets exit code 2. Ctrl-C ends a command with
exit code 130, SIGTERM with 143, and `explore`, which is meant to end so, with 0. However they end,
`tune`, `compare` and `backtest` go on with `--resume` from what they had finished.
"""


STEPS_HEAD = """# Steps of the logs

The steps of each strategy's log, written by `make reference`. A step is an object with its name as
`step`, the keys below where they have a value, and `notes`. What they mean for the reader is in
[Settings and logs of the strategies](strategies.md).
"""


METRICS_HEAD = """# Metrics

The metrics of comparison.csv, backtest.csv and run.json, written by `make reference`. In files
times are seconds and shares lie in 0..1; a value is missing where there is no job to average.
Response time is end minus submit, slowdown is response time over run time.

There are two bounded slowdowns, with wait w and run time r in seconds. `mean_bounded_slowdown` is
(w + max(r, 10)) / max(r, 10), the formula of the CCGrid 2017 paper (IV.B.2), which does not say its
threshold: it is that of objectives, scores and fairness. `bsld` is max(1, (w + r) / max(r, 10)), as
most papers have it, to compare with their figures. They differ only by jobs under 10 s.

The run time of a job that was preempted is what it ran but for runs that were lost, and its wait
the rest of its response time. `utilization` and `utilization_window` count all that ran;
`work_lost` says how much of it was lost, and may grow by one percentage point in a recommendation.
Where nodes are of several types, `utilization`, `utilization_window` and `loss_of_capacity` are
those of the [bottleneck](#the-bottleneck).
"""
NODES = """
## The bottleneck

The bottleneck is the resource of the machine of which the jobs use the largest part: cores, GPUs,
memory or whole nodes (`nodes`). What a job takes at its first place ([rule "places of a
job"](simulator.md#places-of-a-job)) times its run time, over all jobs, is compared with how much
there is; of equal ones it is the first. So it depends on the configuration and the jobs, on no
schedule. Where all nodes are alike it is cores.

Utilization, loss of capacity, the guard rail on the use of the machine, users' classes and shares,
and figures of queued and submitted work are those of the bottleneck. Where it is not cores, the
verdict names it, and summaries in run.json have `bottleneck`. Fair share charges core-seconds
whatever it is.

## Nodes of several types

These are measured of each resource of each type ([rule "places of a
job"](simulator.md#places-of-a-job)), and of all nodes, from the first to the last submission. In
comparison.csv the queue is `nodes gpu` or `all nodes`, the metric `gpus_utilization`; run.json and
`qconf simulate --json` have them under `nodes`. Memory is in MiB.

{resources}

`fragmentation` is exact: between two events, the amount of a resource that is idle on the nodes of
a type counts if

* a waiting job (submitted, not started) has a place that takes some of it, and no more than is
  idle; and
* of all places of waiting jobs that take some of it, none has all that it takes idle.

What a job could have and is kept from by its turn, a head job or a limit is loss of capacity, and
no fragmentation. Idle amounts on different nodes count as if they were on one.

`node_seconds` of a type is the nodes times seconds that its jobs had, each job counted by the
resource of which it has the largest share of a node, as Slurm's `MAX_TRES` bills it.

Waits (`jobs`, `mean_wait`, `median_wait`, `p95_wait`, `max_wait`) are those of the jobs that ran on
nodes of a type (`nodes gpu`, in JSON `ran`), and of those that are meant for them (`jobs for nodes
gpu`, in JSON `meant`): whose first place is there, wherever they run. The latter are the
same jobs in every schedule, so guard rails and "Who waits longer" go by them.
"""
#: Display unit of a column -> unit in files.
_UNITS = {"h": "seconds", "%": "share, 0..1", "jobs": "jobs", "": "number"}


def pages() -> dict[str, str]:
    """Return the text of each page, by file name."""
    return {"commands.md": commands(), "steps.md": steps(), "metrics.md": metrics()}


def commands() -> str:
    """Return the page of all commands' help, with shared options in a section of their own."""
    settings = {**qconf.context_settings, "terminal_width": WIDTH, "max_content_width": WIDTH}
    group = click.Context(qconf, info_name="qconf", **settings)
    helps = {}
    for name in qconf.list_commands(group):
        command = qconf.get_command(group, name)
        assert command is not None
        context = click.Context(command, parent=group, info_name=name)
        helps[name] = command.get_help(context)
        if name == "tune":
            strategies = settings_help(context)
    of: dict[str, list[str]] = {}
    labels: dict[str, str] = {}
    entry = re.compile(r"^  -.*(?:\n {3,}.*)*\n?", re.MULTILINE)
    for name, text in helps.items():
        for each in entry.findall(text):
            of.setdefault(" ".join(each.split()), []).append(name)
            labels[" ".join(each.split())] = re.split(r" {2,}|\n", each.strip())[0]
    shared = {option: names for option, names in of.items() if len(names) >= SHARED}
    parts = [COMMANDS_HEAD, _section("qconf", qconf.get_help(group))]
    for name, text in helps.items():
        own = entry.sub(lambda found: "" if " ".join(found.group().split()) in shared else found.group(), text)
        parts.append(_section(f"qconf {name}", own.replace("\n\nOptions:\n\n", "\n\n").rstrip()))
        if name == "tune":
            parts.append(_section("qconf tune --help-strategies", strategies))
    rows = [
        (f"`{labels[option]}`", option.removeprefix(labels[option]).strip(), ", ".join(names))
        for option, names in shared.items()
    ]
    table = markdown_table(("option", "what it does", "commands"), rows, left=3)
    return "\n".join([*parts, f"## Options that several commands have\n\n{table}\n"])


def steps() -> str:
    """Return the page of all steps in the strategies' logs, with their keys."""
    parts = [STEPS_HEAD]
    by_module: dict[str, list[type[Step]]] = {}
    names = registry()  # imports all strategies
    for step in _titled(Step):
        by_module.setdefault(step.__module__, []).append(step)
    for module, found in sorted(by_module.items()):
        *_, package, name = module.split(".")
        heading = name.replace("_", "-") if name.replace("_", "-") in names else package
        rows = [
            (f"`{step.title}`", (inspect.getdoc(step) or "").partition("\n\n")[0].replace("\n", " "), _keys(step))
            for step in found
        ]
        parts.append(f"## {heading}\n\n{markdown_table(('step', 'what it is', 'keys'), rows, left=3)}\n")
    return "\n".join(parts)


def metrics() -> str:
    """Return the page of all metrics, with unit and meaning."""
    rows = [(f"`{column.key}`", column.name, _UNITS[column.unit], column.meaning) for column in COLUMNS.values()]
    table = markdown_table(("metric", "name", "unit", "meaning"), rows, left=4)
    resources = [(f"`{name}`", meaning) for name, meaning in RESOURCE_METRICS.items()]
    nodes = NODES.format(resources=markdown_table(("metric", "meaning"), resources, left=2))
    return f"{METRICS_HEAD}\n{table}\n{nodes}"


def _titled(kind: type[Step]) -> Iterator[type[Step]]:
    """Yield the subclasses with a title of their own, in the order of their definition."""
    for each in kind.__subclasses__():
        if "title" in vars(each):
            yield each
        yield from _titled(each)


def _keys(step: type[Step]) -> str:
    return ", ".join(f"`{each.name.rstrip('_')}`" for each in fields(step) if each.name != "notes")


def _section(title: str, text: str) -> str:
    lines = "\n".join(line.rstrip() for line in text.splitlines())
    return f"## {title}\n\n```text\n{lines}\n```\n"


if __name__ == "__main__":
    for name, text in pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
