"""Idle cores over time, as the replays of planning disciplines keep them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right


class Idle:
    """Idle cores from each instant of `times` to the next."""

    def __init__(self, now: int, cores: int) -> None:
        self.times, self.cores = [now], [cores]

    def copy(self) -> Idle:
        """Return another of the same cores."""
        twin = Idle(0, 0)
        twin.times, twin.cores = self.times[:], self.cores[:]
        return twin

    def add(self, begin: int, end: int, cores: int) -> None:
        """Change the idle cores by `cores` throughout [begin, end)."""
        begin = max(begin, self.times[0])
        if begin < end:
            first, last = self._cut(begin), self._cut(end)
            for k in range(first, last):
                self.cores[k] += cores
            for k in (last, first):
                if k > 0 and self.cores[k] == self.cores[k - 1]:
                    del self.times[k], self.cores[k]

    def _cut(self, instant: int) -> int:
        k = bisect_left(self.times, instant)
        if k == len(self.times) or self.times[k] != instant:
            self.times.insert(k, instant)
            self.cores.insert(k, self.cores[k - 1])
        return k

    def earliest(self, cores: int, length: int) -> int:
        """Find the first instant from which `cores` cores idle for `length` seconds."""
        candidate = None
        for k, idle in enumerate(self.cores):
            if idle < cores:
                candidate = None
                continue
            if candidate is None:
                candidate = self.times[k]
            if k + 1 < len(self.times) and self.times[k + 1] < candidate + length:
                continue
            return candidate
        raise AssertionError("the last instant has every core idle")

    def fits(self, cores: int, length: int) -> bool:
        """Whether `cores` cores idle for `length` seconds from the first instant on."""
        until = bisect_left(self.times, self.times[0] + length)
        return min(self.cores[:until]) >= cores

    def forget(self, now: int) -> None:
        """Drop what lies before `now`."""
        k = bisect_right(self.times, now) - 1
        self.times[: k + 1], self.cores[:k] = [now], []
