"""Throttles in Slurm: limits of associations and of the QOS that jobs have, and back."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from qconf.config import SiteConfig, ThrottleConfig
from qconf.errors import ExportError
from qconf.export.nodes import read_text

FILE = "throttles.sacctmgr"
USER_JOBS = "bf_max_job_user"  #: of SchedulerParameters: waiting jobs of each user that backfilling looks at
QOS = "normal"  #: that a job has unless it names another

#: Words of sacctmgr for all jobs of an association together, and for those of each user or account of a QOS.
GROUP = {
    "max_run": "GrpJobs",
    "max_run_cores": "GrpTRES=cpu",
    "max_run_core_seconds": "GrpTRESRunMins=cpu",
    "max_queued": "GrpSubmitJobs",
}
EACH = {
    "user": {
        "max_run": "MaxJobsPerUser",
        "max_run_cores": "MaxTRESPerUser=cpu",
        "max_run_core_seconds": "MaxTRESRunMinsPU=cpu",
        "max_queued": "MaxSubmitJobsPerUser",
    },
    "group": {
        "max_run": "MaxJobsPerAccount",
        "max_run_cores": "MaxTRESPerAccount=cpu",
        "max_run_core_seconds": "MaxTRESRunMinsPA=cpu",
        "max_queued": "MaxSubmitJobsPerAccount",
    },
}
NAME = re.compile(r"[A-Za-z0-9_.@-]+")
_LINE = re.compile(r"modify (account|user|qos) (?:where name=)?(\S+) set (\S+)=([0-9]{1,15})(?!\S)")
#: What a word limits: whose jobs together, and the field of a throttle.
_FIELDS = {word: (each, name) for each, words in (("", GROUP), *EACH.items()) for name, word in words.items()}


def of(config: SiteConfig) -> list[ThrottleConfig]:
    """Return the throttles that are limits of associations and of the QOS that all jobs have."""
    return [throttle for throttle in config.throttles if not throttle.is_of_qos]


def refuse(config: SiteConfig) -> None:
    """Raise ExportError where Slurm has no form for a throttle."""
    general = {throttle.kind: throttle for throttle in of(config) if throttle.each and throttle.queue is None}
    for throttle in config.throttles:
        if throttle.queue is not None:
            raise ExportError(
                f"throttles: {throttle.what} has no form in Slurm beside the limits of the queue: write max_run, "
                "max_run_cores, max_user_run or max_user_cores of the queue"
            )
        if throttle.max_eligible is not None and (throttle.each != "user" or not config.backfill):
            raise ExportError(
                f"throttles: max_eligible of {throttle.what} has no form in Slurm; that of each user has, where it "
                "backfills, and max_queued"
            )
        for name in throttle.max_run_resources:
            raise ExportError(f"throttles: the limit of {name} of {throttle.what} has no form in Slurm so far")
        if throttle.name and not NAME.fullmatch(throttle.name):
            raise ExportError(f"throttles: {throttle.name!r} is no name that sacctmgr takes")
        each = general.get(throttle.kind) if throttle.name and not throttle.of_qos else None
        for name, limit in throttle.limits.items():
            if each is not None and limit > each.limits.get(name, limit):
                raise ExportError(
                    f"throttles: {name} of {throttle.what} is above that of {each.what}, and both hold in Slurm"
                )


def statements(config: SiteConfig) -> str:
    """Write the throttles as lines of sacctmgr."""
    lines = []
    for throttle in of(config):
        words = EACH[throttle.each] if throttle.each else GROUP
        kind = "user" if throttle.kind == "user" else "account"
        whose = f"{kind} where name={throttle.name}" if throttle.name else f"qos {QOS}"
        for name, limit in throttle.limits.items():
            if name in words:  # the others are words of SchedulerParameters
                lines.append(f"modify {whose} set {words[name]}={amount(name, limit)}")
    return "".join(f"{line}\n" for line in lines)


def parameters(config: SiteConfig) -> dict[str, str]:
    """Return the words of SchedulerParameters that say how many waiting jobs of each user are looked at."""
    each = [throttle.max_eligible for throttle in config.throttles if throttle.max_eligible is not None]
    return {USER_JOBS: str(each[0])} if each else {}


def with_parameters(throttles: Sequence[ThrottleConfig], words: Iterable[str]) -> tuple[ThrottleConfig, ...]:
    """Return the throttles with what words of SchedulerParameters say of each user's waiting jobs."""
    most = [int(word.partition("=")[2]) for word in words if re.fullmatch(f"{USER_JOBS}=[1-9][0-9]{{0,8}}", word)]
    if not most:
        return tuple(throttles)
    each = next((throttle for throttle in throttles if throttle.each == "user"), ThrottleConfig(each="user"))
    others = [throttle for throttle in throttles if throttle.each != "user"]
    return (*others, each.model_copy(update={"max_eligible": most[-1]}))


def amount(name: str, limit: int) -> int:
    """Return a limit as Slurm counts it: core-seconds in minutes."""
    return max(1, limit // 60) if name == "max_run_core_seconds" else limit


def names(config: SiteConfig, kind: str) -> str:
    """Name the users, or the accounts, whose associations are changed, as a pattern of awk."""
    found = [throttle.name for throttle in of(config) if throttle.name and throttle.kind == kind]
    return "|".join(name.replace(".", "[.]") for name in found) or "-"


def notes(config: SiteConfig) -> Iterator[str]:
    """Name what Slurm does otherwise than the simulator."""
    if not config.throttles:
        return
    if any(f"qos {QOS}" in line for line in statements(config).splitlines()):
        yield (
            f"Throttles of all jobs, of each user and of each account are limits of the QOS {QOS}: they hold for jobs "
            "that have no other QOS, and not where the partition's QOS has a limit of the same name."
        )
    if any(throttle.max_queued is not None for throttle in config.throttles):
        yield (
            "max_queued: Slurm refuses jobs that are submitted beyond it; the simulator keeps them until there is "
            "room, as users do who submit them again."
        )
    if parameters(config):
        yield (
            f"max_eligible: {USER_JOBS} counts a user's jobs in the order of their priorities, and for backfilling "
            "alone; the simulator counts them by submission, for every start."
        )
    if any(throttle.kind == "group" for throttle in config.throttles):
        yield "Groups of throttles are accounts in Slurm."
    if any((throttle.max_run_core_seconds or 0) % 60 for throttle in config.throttles):
        yield "Slurm counts core-minutes: max_run_core_seconds is rounded down to them."


def read(folder: Path) -> tuple[ThrottleConfig, ...]:
    """Read the throttles of an export's file; none where there is no such file."""
    path = folder / FILE
    text = read_text(path) if path.is_file() else ""
    found: dict[tuple[str, str], dict[str, int]] = {}
    for kind, name, word, amount in _LINE.findall(text):
        field = _FIELDS.get(word)
        if field is not None:
            whose = (field[0], "") if kind == "qos" else ({"account": "group"}.get(kind, kind), name)
            found.setdefault(whose, {})[field[1]] = int(amount) * (60 if field[1] == "max_run_core_seconds" else 1)
    wholes = {("", ""): {}, ("user", ""): {"each": "user"}, ("group", ""): {"each": "group"}}
    return tuple(
        ThrottleConfig.model_validate({**wholes.get(whose, {whose[0]: whose[1]}), **limits})
        for whose, limits in found.items()
    )
