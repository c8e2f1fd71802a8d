"""Reference simulator, slow and obvious: the oracle for the engine's tests and for `parsim.verify`."""

from parsim.naive.multiqueue import simulate_multiqueue
from parsim.naive.planning import naive_plan
from parsim.naive.simulator import NaiveSchedule, on_machine, simulate

__all__ = ["NaiveSchedule", "naive_plan", "on_machine", "simulate", "simulate_multiqueue"]
