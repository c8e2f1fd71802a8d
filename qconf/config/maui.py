"""Maui's priority as a formula: a sum of components, each a factor of the job, capped, times a weight.

References
----------
Maui Scheduler Administrator's Guide, 5.1.2 "Job Priority Factors".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

#: The factor of a job, by component. Maui's weights are, in this order, QUEUETIME, XFACTOR, FSUSER, CLASS, QOS,
#: TARGETXFACTOR, PROC, WALLTIME and PS, each times the weight of its group (SERVICE, FS, CRED, TARGET, RES).
FACTORS: Mapping[str, str] = {
    "queue_time": "eligible_time / 60",
    "expansion_factor": "(eligible_time + walltime) / max(walltime, 1)",
    "fairshare": "fairshare_target",
    "queue": "queue_priority",
    "qos": "qos_priority",
    "target_expansion_factor": "qos_target_factor",
    "cores": "ncpus",
    "walltime": "walltime",
    "core_seconds": "ncpus * walltime",
}
SIGNED = ("fairshare", "qos")  #: components whose factor may be below 0
MOST = 1e12  #: largest weight and cap
FORM = "{maui: {queue_time: 1, expansion_factor: {weight: 10, cap: 100}}}"


@dataclass(frozen=True)
class Maui:
    """Weights of components and caps of their factors, by name; a factor is limited to minus its cap ... its cap.

    Raises ValueError for an unknown component or an invalid number.
    """

    weights: Mapping[str, float]
    caps: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in (*self.weights, *self.caps):
            if name not in FACTORS:
                raise ValueError(f"no component {name}; there are {', '.join(FACTORS)}")
        for what, numbers in (("weight", self.weights), ("cap", self.caps)):
            for name, value in numbers.items():
                if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= MOST:
                    raise ValueError(f"{what} of {name} is no number up to {MOST:g}: {value!r}")
        if wrong := next((name for name, cap in self.caps.items() if cap <= 0), None):
            raise ValueError(f"cap of {wrong} is not above 0")
        if not any(self.weights.values()):
            raise ValueError("no component has a weight")

    @property
    def formula(self) -> str:
        """The priority as a formula."""
        terms = (f"{weight:.12g} * {self._factor(name)}" for name, weight in self.weights.items() if weight)
        return " + ".join(terms).replace("+ -", "- ")

    def _factor(self, name: str) -> str:
        factor, cap = FACTORS[name], self.caps.get(name)
        if cap is None:
            return f"({factor})" if " " in factor else factor
        return f"min({f'max({factor}, {-cap:.12g})' if name in SIGNED else factor}, {cap:.12g})"


def parse_order(value: object) -> object:
    """Replace a mapping of Maui's weights by their formula; other values stay. ValueError for other mappings."""
    if not isinstance(value, Mapping):
        return value
    components = value.get("maui")
    if len(value) != 1 or not isinstance(components, Mapping):
        raise ValueError("no order")
    weights: dict[str, float] = {}
    caps: dict[str, float] = {}
    for name, weight in components.items():
        parts = weight if isinstance(weight, Mapping) else {"weight": weight}
        if "weight" not in parts or not {*parts} <= {"weight", "cap"}:
            raise ValueError(f"{name} has a weight, and a cap or none")
        weights[name] = parts["weight"]
        caps |= {name: parts["cap"]} if "cap" in parts else {}
    return Maui(weights, caps).formula
