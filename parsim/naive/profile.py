"""Idle cores over time, as planners see them."""

from __future__ import annotations

import math
from bisect import bisect_left


class Profile:
    """Cores idle from each instant of `times` to the next."""

    def __init__(self, now: float, cores: int) -> None:
        self.times, self.cores = [now], [cores]

    def add(self, begin: float, end: float, cores: int) -> None:
        """Change the idle cores by so many throughout [begin, end)."""
        begin = max(begin, self.times[0])
        if begin < end:
            first, last = self.cut(begin), self.cut(end)
            for k in range(first, last):
                self.cores[k] += cores

    def cut(self, instant: float) -> int:
        """Let an instant be one of `times`, and return where."""
        k = bisect_left(self.times, instant)
        if k == len(self.times) or self.times[k] != instant:
            self.times.insert(k, instant)
            self.cores.insert(k, self.cores[k - 1])
        return k

    def earliest(self, cores: int, seconds: int) -> float:
        """Return the first instant from which so many cores are idle for so many seconds; infinity if there is none."""
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
        """Take so many cores at the first instant from which they are idle for so many seconds, and return that."""
        begin = self.earliest(cores, seconds)
        self.add(begin, begin + seconds, -cores)
        return begin
