"""Replay of a schedule in which jobs are placed on nodes and backfilled as Slurm does.

The numbered rules are those of ``docs/reference/simulator.md``.
"""

from __future__ import annotations

import numpy as np

from parsim.system import System
from parsim.verify.beginning import Beginning
from parsim.verify.node_types import Place, PlacedReplay
from parsim.verify.places import Sums
from parsim.verify.rules import Jobs
from parsim.verify.violation import Discrepancy
from parsim.workload import Column


class PlacedHeadJobsReplay(PlacedReplay):
    """A replay in which jobs have the nodes that they fill best, and the head jobs of queues hold whole nodes."""

    def __init__(self, jobs: Jobs, system: System, beginning: Beginning | None = None) -> None:
        super().__init__(jobs, system, beginning)
        self.plans: dict[int, tuple[int, int, Column]] = {}  #: head job -> from, to, the nodes that it holds
        self.unused = self.idle.copy()  #: where nothing runs

    def _choose(self, nodes: Column, room: Column, size: Column, weight: Column, count: int) -> list[tuple[int, int]]:
        """Rule 85: rows of nodes with room are filled one after the other, the one that the copies fill best first."""
        having, weight = np.flatnonzero(room), weight[nodes]
        ends = (np.diff(nodes[having]) > 1) | (np.diff(weight[having]) != 0)
        rows = [row for row in np.split(having, 1 + np.flatnonzero(ends)) if row.size]
        chosen: list[tuple[int, int]] = []
        while count and rows:
            best = 0
            for k, row in enumerate(rows):
                has_all, best_has_all = (int(room[each].sum()) >= count for each in (row, rows[best]))
                more = int(size[row].sum()) - int(size[rows[best]].sum())
                heavier = int(weight[row[0]]) - int(weight[rows[best][0]])
                better = (has_all and (not best_has_all or more < 0)) or (not has_all and more > 0)
                if heavier < 0 or (heavier == 0 and better):
                    best = k
            row = rows.pop(best)
            alone = row[room[row] >= count]
            if alone.size:
                row = alone[[int(np.argmin(size[alone]))]]
            filled = self._first_with_room(row, room[row], size[row], weight[row], count)
            chosen += [(int(row[at]), copies) for at, copies in filled]
            count -= sum(copies for _, copies in filled)
        return chosen

    def _busy_first(self, job: int, left: Sums) -> Column | None:
        """Rule 87: the nodes that a head job holds which is planned on what is left then; None if it finds no room."""
        count = len(self.nodes)
        idle = (self.idle == self.unused)[:count].all(axis=1)
        takes, holds = np.zeros_like(left), np.zeros(count, dtype=np.bool_)
        for chunk in self._chunks(job):
            nodes, room = self._room(job, 0, chunk, left, takes)
            weight = self._weight(job, chunk, np.maximum(left - takes, 0))
            order = np.lexsort((idle[nodes], weight[nodes]))
            filled = self._first_with_room(nodes[order], room[order], room[order], weight, chunk.count)
            chosen = [(int(nodes[order[at]]), copies) for at, copies in filled]
            if sum(copies for _, copies in chosen) < chunk.count:
                return None
            for node, copies in chosen:
                takes[node] += copies * self._amounts(chunk)
                holds[node] = True
            last = chosen[-1][0]
            others = nodes[(room > 0) & idle[nodes] & (weight[nodes] == weight[last])]
            if others.size and not idle[last]:
                holds[others[0]] = True
        return np.flatnonzero(holds)

    def _not_held(self, left: Sums, begin: int, end: int) -> Sums:
        """Return what is left of the nodes that no plan holds, and no window takes, anywhere in [begin, end)."""
        found = left.copy()
        for outage in self._known():
            if outage.begin < end and begin < outage.known_end:
                found[list(outage.cores)] = 0
        for first, until, nodes in self.plans.values():
            if first < end and until > begin:
                found[nodes] = 0
        return found

    def _place(self, job: int, partition: int) -> Place | None:
        """Rule 86."""
        end = self.now + self.jobs.walltime[job]
        return self._in(job, partition, self._not_held(self.idle, self.now, end + 1))

    def _go_over(self, index: int, ordered: list[int]) -> None:
        jobs, self.plans = self.jobs, {}
        has_head_job: set[int] = set()
        for at, job in self._turns(index, ordered):
            place, queue = self._place(job, index), jobs.queue[job]
            if place is not None:
                if job in self.due and self.chosen[job] != place[0]:
                    raise Discrepancy("placement", job, f"starts at node {self.chosen[job]}, but may at {place[0]}")
                self.at_turn = job, place[1]
                self._must_start_on(job, ((index, jobs.cores[job]),), ordered[at:])
            elif job in self.due:
                raise Discrepancy("head job" if self.plans else "capacity", job, "may not start now")
            elif not self.system.backfill:
                break
            elif (
                queue not in has_head_job
                and self.now - jobs.submit[job] >= self.system.reservation_delay
                and self._plan_for(job)
            ):
                has_head_job.add(queue)

    def _plan_for(self, job: int) -> bool:
        """Plan a head job at the earliest instant at which nodes have room for it; whether there is one."""
        length = self.jobs.walltime[job]
        ends = {*self._ends()} | {end for _, end, _ in self.plans.values()}
        for begin in sorted({self.now, *(end for end in ends if end > self.now)}):
            left = self.idle + sum(takes for end, takes in self.on.values() if end <= begin)
            nodes = self._busy_first(job, self._not_held(left, begin, begin + length))
            if nodes is not None:
                self.plans[job] = (begin, begin + length, nodes)
                return True
        return False
