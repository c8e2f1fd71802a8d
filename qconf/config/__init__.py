"""The configuration of a site: read, checked as a whole, changed safely, written."""

from qconf.config.durations import format_clock, format_duration, parse_duration
from qconf.config.models import (
    POOL_SUFFIX,
    SCALARS,
    AccessConfig,
    FairshareConfig,
    FidelityConfig,
    MachineConfig,
    PoolConfig,
    QueueConfig,
    ShareConfig,
    Target,
)
from qconf.config.policy import POLICY
from qconf.config.problems import ConfigError, Problem
from qconf.config.reading import load, parse
from qconf.config.routing import CORE_LIMITS, access_changes, lost_job, route, too_wide
from qconf.config.site import SiteConfig
from qconf.config.writing import dump

__all__ = [
    "CORE_LIMITS",
    "POLICY",
    "POOL_SUFFIX",
    "SCALARS",
    "AccessConfig",
    "ConfigError",
    "FairshareConfig",
    "FidelityConfig",
    "MachineConfig",
    "PoolConfig",
    "Problem",
    "QueueConfig",
    "ShareConfig",
    "SiteConfig",
    "Target",
    "access_changes",
    "dump",
    "format_clock",
    "format_duration",
    "load",
    "lost_job",
    "parse",
    "parse_duration",
    "route",
    "too_wide",
]
