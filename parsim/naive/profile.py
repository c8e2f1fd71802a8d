"""Idle cores over time, the profile of the reference planner."""

from __future__ import annotations

import math
from bisect import bisect_left


class Profile:
    """`cores[k]` are idle from ``times[k]`` to ``times[k + 1]``, the last of them for ever."""

    def __init__(self, now: float, cores: int) -> None:
        self.times, self.cores = [now], [cores]

    def add(self, begin: float, end: float, cores: int) -> None:
        """Add `cores` to the idle cores throughout [begin, end)."""
        begin = max(begin, self.times[0])
        if begin < end:
            first, last = self.cut(begin), self.cut(end)
            for k in range(first, last):
                self.cores[k] += cores

    def cut(self, instant: float) -> int:
        """Insert an instant into `times` if it is not there, and return its index."""
        k = bisect_left(self.times, instant)
        if k == len(self.times) or self.times[k] != instant:
            self.times.insert(k, instant)
            self.cores.insert(k, self.cores[k - 1])
        return k

    def earliest(self, cores: int, seconds: int) -> float:
        """Return the first instant at which `cores` are idle for `seconds`; infinity if there is none."""
        begin = None
        for k, idle in enumerate(self.cores):
            if begin is not None and self.times[k] >= begin + seconds:
                return begin
            if idle < cores:
                begin = None
            elif begin is None:
                begin = self.times[k]
        return math.inf if begin is None else begin

    def take_earliest(self, cores: int, seconds: int) -> float:
        """Take `cores` for `seconds` at the earliest instant, and return that instant."""
        begin = self.earliest(cores, seconds)
        self.add(begin, begin + seconds, -cores)
        return begin
