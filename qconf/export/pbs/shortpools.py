"""Shortpools as PBS's standing reservations, and the script that moves short jobs into them while their hours last."""

from __future__ import annotations

from qconf.config import SiteConfig
from qconf.config.models import DAYS
from qconf.history.standing import Standing, standing

WEEKS = 52  #: for which reservations are made
SCRIPT = "qconf-shortpool"
_BYDAY = dict(zip(DAYS, ("MO", "TU", "WE", "TH", "FR", "SA", "SU"), strict=True))


def reservations(config: SiteConfig) -> list[Standing]:
    """Return the reservation of each shortpool."""
    return [
        standing(each, number, [day for day in DAYS if day in each.days], each.cores)
        for number, each in enumerate(config.shortpools, start=1)
    ]


def commands(config: SiteConfig) -> list[str]:
    """Write the commands of the shell that make the reservations, from the next time of each on."""
    lines = []
    for each in reservations(config):
        node = config.machine.cores_per_node if config.machine.whole_nodes else 1
        place = "scatter:excl" if config.machine.whole_nodes else "free"
        days = [_BYDAY[day] for day in each.days]
        rule = f"FREQ=WEEKLY;COUNT={WEEKS * len(days)};BYDAY={','.join(days)}"
        request = f"-l select={each.cores // node}:ncpus={node} -l place={place}"
        lines += [
            f"start=$(date --date='next {each.days[0].capitalize()} {each.begin}' +%s)",
            f'stop=$(date --date="@$((start + {60 * each.minutes}))" +%Y%m%d%H%M)',
            f'pbs_rsub -N {each.name} -R $(date --date="@$start" +%Y%m%d%H%M) -E $stop -r "{rule}" {request}',
        ]
    return lines


def limits(config: SiteConfig) -> list[tuple[str, int]]:
    """Return the name of each reservation, and the seconds that a job for it may last at most."""
    return [(each.name, each.walltime) for each in reservations(config)]
