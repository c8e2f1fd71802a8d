"""Quality of service, for the verifier: rules 50 and 51 of ``docs/reference/simulator.md``."""

from __future__ import annotations

from parsim.system import System

NAMES = ("qos_priority", "qos_target", "qos_target_factor")  #: of formulas, in the order of `Classes.values`


class Classes:
    """What the QOS of a system are worth, by name."""

    def __init__(self, system: System) -> None:
        self._of = {qos.name: qos for qos in system.qos}

    def values(self, name: str, eligible_time: float, walltime: float) -> tuple[float, float, float]:
        """Rule 50: the values of `NAMES` of a job of the QOS of this name, which has waited so long."""
        qos = self._of.get(name)
        if qos is None:
            return 0.0, 0.0, 0.0
        if qos.target is None:
            return float(qos.priority), 0.0, 0.0
        target = float(qos.target)
        left = target - (eligible_time + walltime) / walltime
        if left < 0.0001:
            left = 0.0001
        return float(qos.priority), target, 1.0 / (left * left)

    def is_exempt(self, name: str, limit: str) -> bool:
        """Rule 51: whether jobs of the QOS of this name are exempt from limits of that name."""
        return name in self._of and any(each in ("all", limit) for each in self._of[name].exempt)
