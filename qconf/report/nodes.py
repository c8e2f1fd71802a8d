"""Tables for nodes of several types: use of each resource, and waits, before and after."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from rich.table import Table

from parsim.metrics.nodes import ALL_NODES, NodeUse
from qconf.recommend import Recommendation
from qconf.report.layout import new_table
from qconf.report.wording import GIB, count, hours, number

Uses = Mapping[str, NodeUse]
USE = "nodes", "resource", "there", "hours", "utilization, %", "fragmented, %"
WAITS = (
    "nodes",
    "jobs that ran there",
    "mean wait, h",
    "p95 wait, h",
    "jobs meant for them",
    "mean wait, h",
    "p95 wait, h",
)


class NodeTable(NamedTuple):
    """Headings, `texts` columns of text, then numbers; a row for each type of nodes, or for each of its resources."""

    title: str
    headings: Sequence[str]
    texts: int  # columns, the first ones, that hold no numbers
    rows: Sequence[Sequence[str]]


def tables_of(before: Uses, after: Uses | None = None) -> Iterator[NodeTable]:
    """Yield a table of use and one of waits, for one outcome or two; none if nodes are of one type."""
    if not before:
        return
    outcomes = [before] if after is None else [before, after]
    yield NodeTable("Use of the nodes", USE, 2, list(_use(outcomes)))
    yield NodeTable("Waits by nodes", WAITS, 1, list(_waits(outcomes)))


def _use(outcomes: Sequence[Uses]) -> Iterator[list[str]]:
    for name, of_type in outcomes[0].items():
        shared = [r for r in of_type.resources if all(r in each[name].resources for each in outcomes)]
        for resource in shared:
            values = of_type.resources[resource]
            scale = GIB if resource == "memory" else 1
            both = [each[name].resources[resource] for each in outcomes]
            yield [
                name,
                "memory, GiB" if resource == "memory" else resource.replace("_", " "),
                count(values["there"] / scale),
                _before_after(count(each["used"] / scale / 3600) for each in both),
                _before_after(number(100 * each["utilization"], 1) for each in both),
                _before_after(number(100 * each["fragmentation"], 1) for each in both),
            ]
        if name != ALL_NODES:
            spent = _before_after(count(each[name].node_seconds / 3600) for each in outcomes)
            yield [name, "nodes", "", spent, "", ""]


def _waits(outcomes: Sequence[Uses]) -> Iterator[list[str]]:
    for name in outcomes[0]:
        if name == ALL_NODES:
            continue
        row = [name]
        for which in ("ran", "meant"):
            both = [getattr(each[name], which) for each in outcomes]
            row.append(_before_after(count(each["jobs"]) for each in both))
            row += [_before_after(hours(each[key]) for each in both) for key in ("mean_wait", "p95_wait")]
        yield row


def _before_after(texts: Iterator[str]) -> str:
    """Return the value before, an arrow, and the value after; one value if both are equal."""
    return " -> ".join(dict.fromkeys(texts))


def node_tables(found: Recommendation) -> Iterator[NodeTable]:
    """Yield the tables of the test period; a cell has the base's value, and the recommendation's if it differs."""
    before, after = found.rows[0].test, found.row.test
    if before is not None:
        change = found.proposes and after is not None
        yield from tables_of(before.nodes, after.nodes if change and after is not None else None)


def printed(table: NodeTable) -> Table:
    """Return a table for the terminal."""
    headings = [_SHORT.get(each, each) for each in table.headings]
    return new_table(headings[: table.texts], headings[table.texts :], table.rows)


_SHORT = {
    "utilization, %": "util %",
    "fragmented, %": "fragmented %",
    "jobs that ran there": "ran there",
    "jobs meant for them": "meant for",
    "mean wait, h": "wait h",
    "p95 wait, h": "p95 h",
}
