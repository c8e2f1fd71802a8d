"""Read the settings of PBS's scheduler from sched_config."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from qconf.errors import InputError
from qconf.export.nodes import read_text

#: The scheduler of Torque has lines without a colon.
_SETTING = re.compile(
    r"([A-Za-z_]\w*)(?:\s*:\s*|\s+(?=\w+\s+(?:prime|non_prime|all)\b))(\"[^\"]*\"|[^\s\"#]+)(?:\s+(\w+))?",
    re.IGNORECASE,
)
_FORMER = {"strict_fifo": "strict_ordering"}  #: former names of settings
#: Values at times (prime or not) for which a setting has no line.
_DEFAULTS = {"strict_ordering": "false", "by_queue": "true", "round_robin": "false", "fair_share": "false"}
TRUE = ("true", "yes", "t", "1")
#: PBS's values for missing lines.
_SHIPPED = _DEFAULTS | {"preemptive_sched": "true", "help_starving_jobs": "false"}
_PRIME = {"prime": ("prime",), "non_prime": ("non_prime",), "all": ("prime", "non_prime")}

Settings = Mapping[str, str | None]  #: new value by name; None removes the line


@dataclass(frozen=True)
class Scheduler:
    """The settings of sched_config; a setting may differ between prime and non-prime time."""

    settings: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  #: value by setting, prime or non_prime

    @classmethod
    def read(cls, path: str | Path) -> Scheduler:
        """Read ``$PBS_HOME/sched_priv/sched_config``. Raises InputError."""
        settings: dict[str, dict[str, str]] = {}
        for number, line in enumerate(read_text(path).splitlines(), start=1):
            text = line.strip()
            if not text or text.startswith("#"):
                continue
            found = _SETTING.match(text)
            if found is None:
                fix = "give the scheduler's sched_priv/sched_config"
                if re.match(r"[A-Z][A-Z0-9]+(\[|\s)", text):
                    fix = "of Maui or Moab leave it out, and write reservation_depth and order: {maui: ...} yourself"
                raise InputError("is no line like 'by_queue: True ALL'", file=path, line=number, value=text, fix=fix)
            name, value, when = found.groups()
            name = _FORMER.get(name, name)
            times = _PRIME.get((when or "all").lower(), _PRIME["all"])
            held, value = settings.setdefault(name, {}), value.strip('"')
            for time in times:  # each line of a sort key appends
                held[time] = f"{held[time]}, {value}" if name.endswith("_sort_key") and time in held else value
        for name in _DEFAULTS.keys() & settings.keys():
            settings[name] = dict.fromkeys(_PRIME["all"], _DEFAULTS[name]) | settings[name]
        return cls(settings)

    def value(self, name: str) -> str | None:
        """Return the value of a setting in non-prime time, None without a line."""
        held = self.settings.get(name, {})
        return held.get("non_prime", held.get("prime"))

    def differs(self, name: str) -> bool:
        """Whether a setting differs between prime and non-prime time."""
        return len(set(self.settings.get(name, {}).values())) > 1

    def is_true(self, name: str) -> bool:
        """Whether a setting, or its default, is true in non-prime time."""
        return (self.value(name) or _DEFAULTS.get(name, "")).lower() in TRUE

    def on(self, name: str, *, default: bool = False) -> bool:
        """Whether a setting is true at any time."""
        held = self.settings.get(name, {}).values()
        return any(value.lower() in TRUE for value in held) if held else default

    def lacks(self, name: str, value: str | None) -> bool:
        """Whether a setting must change to have this value at all times; None means no line."""
        now = self.value(name)
        if value is None:
            return now is not None
        return self.differs(name) or (now or _SHIPPED.get(name, "")).lower() != value.lower()
