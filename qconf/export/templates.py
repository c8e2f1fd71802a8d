"""Texts with gaps; what fills the gaps has passed the allow-lists."""

from __future__ import annotations

from functools import lru_cache

import jinja2


@lru_cache(maxsize=1)
def _environment() -> jinja2.Environment:
    return jinja2.Environment(  # noqa: S701 - no HTML here
        loader=jinja2.PrefixLoader(
            {target: jinja2.PackageLoader(f"qconf.export.{target}") for target in ("pbs", "slurm")}
        ),
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
    )


def render(name: str, /, **values: object) -> str:
    """Fill the template `name`; a gap without a value is an error."""
    return _environment().get_template(f"{name}.j2").render(**values)
