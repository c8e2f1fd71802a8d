"""Write throttles as Slurm limits of associations and of the jobs' QOS, and read them back."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

from parsim.model.throttles import RESOURCES
from qconf.config import SiteConfig, ThrottleConfig
from qconf.config.models import Settings
from qconf.export.base import LIMITS
from qconf.export.slurm.conf import Conf
from qconf.export.types import NAME as RESOURCE
from qconf.history.chunks import TRES_SIZE

FILE = "throttles.sacctmgr"
USER_JOBS = "bf_max_job_user"  #: word of SchedulerParameters: number of each user's waiting jobs that backfilling tries
FREE = 2_000_000_000  #: a limit that is never reached, but overrides others
QOS = "normal"  #: the default QOS of a job

EACH = ("", "user", "group")  #: whose jobs a limit counts together: those of all, of each user, of each account
_WORDS = {
    "max_run": ("GrpJobs", "MaxJobsPerUser", "MaxJobsPerAccount"),
    "max_run_cores": ("GrpTRES=cpu", "MaxTRESPerUser=cpu", "MaxTRESPerAccount=cpu"),
    "max_run_core_seconds": ("GrpTRESRunMins=cpu", "MaxTRESRunMinsPU=cpu", "MaxTRESRunMinsPA=cpu"),
    "max_queued": ("GrpSubmitJobs", "MaxSubmitJobsPerUser", "MaxSubmitJobsPerAccount"),
}
#: (scope, field of a throttle) -> word of sacctmgr, and the reverse.
WORDS = {(each, name): word for name, words in _WORDS.items() for each, word in zip(EACH, words, strict=True)}
_FIELDS = {word: of for of, word in WORDS.items()}
#: Limit of a queue -> word of sacctmgr.
OF_QUEUES = {limit: WORDS[each, what] for limit, (what, each) in LIMITS.items()}
_TRES = {"memory": "mem", "gpus": "gres/gpu"}
NAME = re.compile(r"[A-Za-z0-9_.@-]+")


def tres(resource: str) -> str:
    """Return the TRES of a resource."""
    return _TRES.get(resource, f"gres/{resource}")


def word_of(each: str, name: str) -> str | None:
    """Return the word of a limit; for other resources, that of cores with their TRES; None without a word."""
    limit, _, resource = name.partition(".")
    if limit == RESOURCES:
        return WORDS[each, "max_run_cores"].replace("cpu", tres(resource))
    return WORDS.get((each, name))


def limit_of(word: str) -> tuple[str, str] | None:
    """Return (scope, limit) of a word; None if a configuration has no such limit."""
    kind, _, counted = word.partition("=")
    each, name = _FIELDS.get(f"{kind}=cpu", ("", ""))
    if word in _FIELDS or name != "max_run_cores":
        return _FIELDS.get(word)
    resource = {of: name for name, of in _TRES.items()}.get(counted) or counted.removeprefix("gres/")
    return None if resource == counted or not RESOURCE.fullmatch(resource) else (each, f"{RESOURCES}.{resource}")


def number(word: str, text: str) -> int | None:
    """Read the value of a limit, memory in MiB; None if it is no number."""
    match = TRES_SIZE.fullmatch(text) if word.endswith("=mem") else None
    if match is None or not match[3]:
        return int(text) if re.fullmatch("[0-9]{1,15}", text) else None
    return int((int(match[1]) + float(f"0.{match[2] or 0}")) * 1024.0 ** (" KMGTP".index(match[3]) - 2))


def limited(config: SiteConfig) -> list[str]:
    """Return the resources, other than cores, that throttles limit, ordered by TRES."""
    return sorted({name for throttle in config.throttles for name in throttle.max_run_resources}, key=tres)


def of_queue(config: SiteConfig, queue: str) -> list[tuple[str, int]]:
    """Return (word, limit) of a queue's QOS for resources other than cores."""
    return [
        (str(word_of(throttle.each or "", f"{RESOURCES}.{name}")), limit)
        for throttle in config.throttles
        if throttle.queue == queue and not throttle.name and not throttle.is_of_qos
        for name, limit in throttle.max_run_resources.items()
    ]


def counted_only(
    throttles: Iterable[ThrottleConfig], counted: Collection[str], warnings: list[str]
) -> tuple[ThrottleConfig, ...]:
    """Return the throttles without limits of resources that are not `counted`; each such limit is a warning."""
    found, spelled = [], {name.lower(): name for name in counted}
    for throttle in throttles:
        limits = throttle.max_run_resources.items()
        kept = {spelled[name.lower()]: limit for name, limit in limits if name.lower() in spelled}
        left = [tres(name) for name, _ in limits if name.lower() not in spelled]
        warnings += [
            f"throttles: the limit of {name} of {throttle.what} is not simulated: it is not counted of nodes"
            for name in left
        ]
        found.append(throttle.model_copy(update={RESOURCES: Settings(kept)}))
    return tuple(throttle for throttle in found if throttle.limits)


def of(config: SiteConfig) -> list[ThrottleConfig]:
    """Return the throttles that are limits of associations or of the default QOS."""
    return [throttle for throttle in config.throttles if not throttle.is_of_qos and throttle.queue is None]


def statements(config: SiteConfig) -> list[str]:
    """Return the throttles as lines of sacctmgr."""
    lines = []
    for throttle in of(config):
        kind = "user" if throttle.kind == "user" else "account"
        whose = f"{kind} where name={throttle.name}" if throttle.name else f"qos {QOS}"
        for name, limit in throttle.limits.items():
            word = word_of(throttle.each or "", name)
            if word is not None:  # others are in SchedulerParameters
                lines.append(f"modify {whose} set {word}={amount(name, limit)}")
    return lines


def parameters(config: SiteConfig) -> dict[str, str]:
    """Return the word of SchedulerParameters for max_eligible of each user, if there is one."""
    each = [throttle.max_eligible for throttle in config.throttles if throttle.max_eligible is not None]
    return {USER_JOBS: str(each[0])} if each else {}


def with_parameters(throttles: Sequence[ThrottleConfig], words: Iterable[str]) -> tuple[ThrottleConfig, ...]:
    """Return the throttles with max_eligible of each user, from words of SchedulerParameters."""
    most = [int(word.partition("=")[2]) for word in words if re.fullmatch(f"{USER_JOBS}=[1-9][0-9]{{0,8}}", word)]
    if not most:
        return tuple(throttles)
    each = next((throttle for throttle in throttles if throttle.each == "user"), ThrottleConfig(each="user"))
    others = [throttle for throttle in throttles if throttle.each != "user"]
    return (*others, each.model_copy(update={"max_eligible": most[-1]}))


def amount(name: str, limit: int) -> int:
    """Return a limit in Slurm's unit: core-seconds become core-minutes."""
    return max(1, limit // 60) if name == "max_run_core_seconds" else limit


def by_whose(words: Iterable[tuple[str, str]]) -> dict[str, dict[str, int]]:
    """Return the limits that words of a QOS or an association set, by scope and limit."""
    found: dict[str, dict[str, int]] = {}
    for word, text in words:
        each, name = limit_of(word) or ("", "")
        most = number(word, text) or 0
        if name and 0 < most < FREE:
            found.setdefault(each, {})[name] = most * (60 if name == "max_run_core_seconds" else 1)
    return found


def read(conf: Conf) -> tuple[ThrottleConfig, ...]:
    """Read the throttles from an export's file; empty without it."""
    found: dict[tuple[str, str], dict[str, int]] = {}
    for kind, name, word, text in conf.statements(FILE):
        for each, limits in by_whose([(word, text)]).items():
            whose = ("each", each) if kind == "qos" else ({"account": "group"}.get(kind, kind), name)
            found.setdefault(whose, {}).update(limits)
    return tuple(ThrottleConfig.of(of, **({field: name} if name else {})) for (field, name), of in found.items())
