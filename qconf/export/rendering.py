"""Render the templates of scripts and plans; only checked names and numbers may enter one."""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache

import jinja2

from parsim.model.system import ORDERS
from parsim.model.workload import MAX_CORES, MAX_DURATION
from qconf.config import KEPT, POOL_SUFFIX, SiteConfig, format_duration
from qconf.errors import ExportError
from qconf.history.names import LONGEST_NAME

HOST_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}")


@lru_cache(maxsize=1)
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(  # noqa: S701 - no HTML here
        loader=jinja2.PackageLoader("qconf.export", ""),
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
    )
    environment.globals |= {"MAX_CORES": MAX_CORES, "MAX_DURATION": MAX_DURATION, "KEPT": KEPT, "ORDERS": ORDERS}
    environment.filters["cell"] = lambda text: f"`{text}`".replace("|", "\\|") if text else ""
    environment.filters["repr"], environment.tests["matching"] = repr, lambda text, like: re.fullmatch(like, text)
    environment.filters["names"] = lambda objects: ", ".join(each.name for each in objects)
    environment.filters |= {"duration": format_duration, "exact": lambda value: str(Fraction(repr(value)))}
    return environment


def render(target: str, name: str, /, **values: object) -> str:
    """Render the template `name` of a target; an undefined variable is an error."""
    return _environment().get_template(f"{target}/templates/{name}.j2").render(**values)


def plan(target: str, **values: object) -> str:
    """Render the plan of a target, without repeated blank lines outside code blocks."""
    parts = re.split(r"(^```.*?^```$)", render(target, "plan.md", **values), flags=re.MULTILINE | re.DOTALL)
    text = "".join(part if number % 2 else re.sub(r"\n[ \t\n]*\n", "\n\n", part) for number, part in enumerate(parts))
    return text.strip() + "\n"


def notes(target: str, feature: str, /, **values: object) -> list[str]:
    """Return the lines of the macro `feature` in a target's notes ("" for the common notes)."""
    module = _environment().get_template(f"{target}/templates/notes.j2").make_module(values)
    return [line for line in str(getattr(module, feature)()).splitlines() if line.strip()]


def check_queue(name: str, *, system: str = "PBS", most: int = LONGEST_NAME, pooled: bool = False) -> None:
    """Raise `ExportError` if a queue name is not safe in a script; names are not escaped or shortened.

    `most` is the batch system's maximum length; a `pooled` queue needs room for the pool's suffix.
    """
    most -= len(POOL_SUFFIX) if pooled else 0
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", name) or len(name) > most:
        why = f", since {POOL_SUFFIX} is appended for the pool" if pooled else ""
        raise ExportError(
            f"queue name {name!r}: {system} takes 1 to {most} letters, digits, _ and -, a letter first{why}. "
            "Rename it in the configuration."
        )


def checked_host(name: str) -> str:
    """Return the node name if it is safe in a script, else raise `ExportError`."""
    if not HOST_NAME.fullmatch(name):
        raise ExportError(f"node name {name!r}: 1 to 63 letters, digits, _ . and - are taken, a letter or digit first.")
    return name


def comment_name(config: SiteConfig) -> str:
    """Return the machine's name with unsafe characters replaced by "?", for a comment."""
    return "".join(c if (c.isascii() and c.isalnum()) or c in "-_." else "?" for c in config.machine.name)
