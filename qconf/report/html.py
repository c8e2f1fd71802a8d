"""Pages that open offline: one file with style, script and figures, for light, dark and paper.

Names and comments from logs stay text: Jinja escapes them, the script inserts them as text, and the page's content
security policy allows only its own script and no requests.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache, partial
from importlib.resources import files
from typing import Any

import jinja2
from markupsafe import Markup, escape

from parsim.model.node_types import CORES
from qconf.config import format_duration
from qconf.inert import inert
from qconf.recommend import Row
from qconf.report import wording
from qconf.report.charts import Figure, script
from qconf.text import TERMS, in_terms_of

Sections = Sequence[tuple[str, str]]  #: id and title of each section, in order; the id names its template
Layers = Sequence[tuple[str, Sections]]  #: title of a part that opens at a click ("": always open), and its sections
METHOD = "For who checks the method"  #: the layer that is not printed
#: Terms that texts link to the glossary, with their anchors.
LINKED = {
    "resamples": "resamples",
    "test period": "test-period",
    "guard rails": "guard-rail",
    "utilization": "utilization",
}


def page(
    folder: str,
    title: str,
    layers: Layers,
    figures: Mapping[str, Figure],
    context: Mapping[str, Any],
) -> str:
    """Return a page from the templates of a folder, or else the common ones; empty sections are left out.

    `resource` in the context is the bottleneck; texts then name it instead of cores.
    """
    resource = context.get("resource", CORES)
    about = {"figures": figures, "bottleneck": TERMS[resource][0], "terms": partial(in_terms_of, resource)}
    environment, shown = _environment(), dict(context) | about

    def part(name: str) -> Markup:
        found = environment.select_template([f"{folder}/{name}.html.j2", f"{name}.html.j2"])
        return Markup(found.render(shown).strip())  # noqa: S704 - of our own templates, which escape

    shown_layers = []
    for heading, sections in layers:
        parts = [{"id": name, "title": title, "body": part(name)} for name, title in sections]
        shown_layers.append({"title": heading, "parts": [each for each in parts if each["body"]]})
    code = script() + "\n" + _asset("page.js")
    digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
    text = environment.get_template("page.html.j2").render(
        title=title,
        style=Markup(_asset("page.css")),  # noqa: S704
        script=Markup(code),  # noqa: S704
        script_hash=digest,
        head=part("head"),
        layers=[each for each in shown_layers if each["parts"]],
        method=METHOD,
    )
    begin, rest = text.split("<script>", 1)
    lines = "\n".join(line.rstrip() for line in begin.splitlines() if line.strip())
    return f"{lines}\n<script>{rest.rstrip()}\n"  # the script stays as its digest has it


def load_templates(folder: str) -> None:
    """Compile the templates that `page` needs for a folder, ahead of time."""
    environment = _environment()
    for name in environment.list_templates(extensions=["j2"]):
        if "/" not in name or name.startswith(f"{folder}/"):
            environment.get_template(name)


def _asset(name: str) -> str:
    return (files("qconf.report") / "templates" / name).read_text(encoding="utf-8")


def settings_shown(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that the result depends on, by name: all but the number of workers."""
    return {key: settings[key] for key in sorted(settings) if key != "workers"}


def settings_rows(settings: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the settings that the result depends on, as texts."""
    return [setting(*item) for item in settings_shown(settings).items()]


def setting(name: str, value: Any) -> tuple[str, str]:  # noqa: ANN401 - whatever was set
    """Format a setting; a value in seconds becomes a duration."""
    if name.endswith("_seconds") and isinstance(value, int):
        return name.removesuffix("_seconds").replace("_", " "), format_duration(value) if value else "none"
    return name.replace("_", " "), wording.value_text(value)


@lru_cache(maxsize=1)
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("qconf.report", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=lambda value: inert(value, lines=True) if type(value) is str else value,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "hours": wording.hours,
        "number": wording.number,
        "count": wording.count,
        "gain": wording.gain_text,
        "interval": wording.interval_text,
        "date": wording.date,
        "sense": _sense,
        "steps": steps,
        "arrows": _arrows,
        "linked": _linked,
    }
    environment.globals |= vars(environment.get_template("macros.html.j2").module)
    return environment


def _arrows(text: str) -> str:
    """Convert a terminal's text for a page: arrows, and no break between a number and its unit."""
    arrows = text.replace(" -> ", "\N{NO-BREAK SPACE}\N{RIGHTWARDS ARROW} ")
    return re.sub(r"(?<=\d) (?=(h|%|cores|jobs)\b|%)", "\N{NO-BREAK SPACE}", arrows)


def _linked(text: str) -> Markup:
    """Convert a text with `_arrows`, and link the first use of each term; options are kept on one line."""
    found = re.sub("--[a-z]+", r'<span class="option">\g<0></span>', str(escape(inert(_arrows(text)))))
    for term, anchor in LINKED.items():
        found = found.replace(term, f'<a class="term" href="#term-{anchor}">{term}</a>', 1)
    return Markup(found)  # noqa: S704 - escaped above


def _sense(row: Row) -> str:
    """Return ``better`` for a certain gain, ``worse`` for a loss, else an empty text."""
    if row.gain is not None and row.gain < 0:
        return "worse"
    return "better" if row.bootstrap is not None and row.bootstrap.certain else ""


def steps(decisions: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Yield a strategy's log for a reader: each step with its facts by name; long lists are only in run.json."""
    for step in decisions:
        texts = {
            str(key).replace("_", " "): f"{len(value)} values"
            if isinstance(value, list) and len(value) > LONGEST_LIST
            else wording.value_text(value)
            for key, value in step.items()
            if key != "step"
        }
        yield wording.value_text(step.get("step", "")), [fact for fact in texts.items() if fact[1] != wording.ABSENT]


LONGEST_LIST = 24
