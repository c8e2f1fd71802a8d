"""The configuration of a site, for all other packages: read, checked as a whole, changed safely, written."""

from qconf.config.durations import format_clock, format_duration, parse_duration
from qconf.config.models import (
    KEPT,
    POOL_SUFFIX,
    SCALARS,
    UNDIVIDED,
    AccessConfig,
    FairshareConfig,
    FidelityConfig,
    MachineConfig,
    NodesConfig,
    PoolConfig,
    QOSConfig,
    QueueConfig,
    ShareConfig,
    ShortpoolConfig,
    Target,
    ThrottleConfig,
)
from qconf.config.policy import POLICY
from qconf.config.problems import ConfigError, Problem
from qconf.config.reading import load, parse, with_changes
from qconf.config.routing import (
    CORE_LIMITS,
    access_changes,
    kept_off,
    lost_job,
    over_limit,
    qos_of,
    route,
    throttled,
    too_wide,
)
from qconf.config.site import SiteConfig
from qconf.config.writing import dump, flow, written

__all__ = [
    "CORE_LIMITS",
    "KEPT",
    "POLICY",
    "POOL_SUFFIX",
    "SCALARS",
    "UNDIVIDED",
    "AccessConfig",
    "ConfigError",
    "FairshareConfig",
    "FidelityConfig",
    "MachineConfig",
    "NodesConfig",
    "PoolConfig",
    "Problem",
    "QOSConfig",
    "QueueConfig",
    "ShareConfig",
    "ShortpoolConfig",
    "SiteConfig",
    "Target",
    "ThrottleConfig",
    "access_changes",
    "dump",
    "flow",
    "format_clock",
    "format_duration",
    "kept_off",
    "load",
    "lost_job",
    "over_limit",
    "parse",
    "parse_duration",
    "qos_of",
    "route",
    "throttled",
    "too_wide",
    "with_changes",
    "written",
]
