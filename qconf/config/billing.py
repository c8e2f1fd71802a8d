"""Slurm's TRESBillingWeights, read into and written from weights of resources (rule "charges and decay")."""

from __future__ import annotations

from collections.abc import Mapping

#: Resources by TRES of Slurm; the TRES of any other resource of a node is ``gres/`` and its name.
_RESOURCES = {"cpu": "cores", "mem": "memory", "gres/gpu": "gpus"}
_TRES = {"cores": "CPU", "memory": "Mem", "gpus": "GRES/gpu"}
_UNITS = "KMGTP"


def weights(text: str | None) -> dict[str, float]:
    """Return the weight of each simulated resource in TRESBillingWeights; memory per MiB."""
    return {name: weight for tres, weight in _parts(text) if (name := _resource(tres)) is not None}


def left_out(text: str | None) -> list[str]:
    """Return the TRES that are not simulated: nodes, licences, energy, GPUs by type."""
    return [tres for tres, _ in _parts(text) if _resource(tres) is None]


def written(charges: Mapping[str, float]) -> str:
    """Return weights of resources as TRESBillingWeights."""
    by_name = ((name, weight * 1024 if name == "memory" else weight) for name, weight in charges.items())
    return ",".join(
        f"{_TRES.get(name, f'GRES/{name}')}={weight:.12f}".rstrip("0").rstrip(".") + "G" * (name == "memory")
        for name, weight in by_name
    )


def _resource(tres: str) -> str | None:
    name = tres.lower()
    kind = name.removeprefix("gres/")
    return _RESOURCES.get(name) or (kind if kind != name and ":" not in kind else None)


def _parts(text: str | None) -> list[tuple[str, float]]:
    found = []
    for tres, _, number in (part.partition("=") for part in (text or "").split(",") if part):
        power = _UNITS.find(number[-1]) + 1
        weight = float(number.rstrip(_UNITS)) / 1024**power
        found.append((tres, weight * 1024**2 if power and tres.lower() == "mem" else weight))
    return found
