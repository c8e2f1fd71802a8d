"""Reference simulator, slow and obvious: the oracle for the engine's tests and for `parsim.verify`."""

from parsim.naive.simulator import NaiveSchedule, on_machine, simulate

__all__ = ["NaiveSchedule", "on_machine", "simulate"]
