"""The slow, obvious simulator that everything fast is compared with, and that `parsim.verify` asks who had to start."""

from parsim.naive.multiqueue import simulate_multiqueue
from parsim.naive.planning import naive_plan
from parsim.naive.simulator import NaiveSchedule, on_machine, simulate

__all__ = ["NaiveSchedule", "naive_plan", "on_machine", "simulate", "simulate_multiqueue"]
