"""``qconf explore``: serves a local page where limits can be moved, and shows how waits change."""

from __future__ import annotations

import os
import socket
from contextlib import nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from qconf.cli.export import chosen, target_options
from qconf.cli.messages import say, warn
from qconf.cli.options import PATH, json_option, stem
from qconf.cli.settings import strategy_settings
from qconf.cli.source import FIELDS, Source, source_options
from qconf.errors import InputError, QconfError
from qconf.text import as_json as written

if TYPE_CHECKING:
    from qconf.config import SiteConfig
    from qconf.explore.site import PastRun, Site
    from qconf.export import Exporter
    from qconf.history import History

FOLDER = "explore"  #: folder of the states in a run directory

EXAMPLES = """\b
Examples:
  qconf explore reports/2026-10                        # the run of a tune
  qconf explore month.csv --config site.yaml           # without one
"""


@click.command("explore", epilog=EXAMPLES)
@source_options(*FIELDS)
@target_options("current", "scheduler", "nodes", "qos", "shares")
@click.option("-o", "--out", type=PATH, help="Where states are kept.  [default: the run, else reports/<history>]")
@click.option("--port", type=click.IntRange(1, 65535), help="Of the page.  [default: a free one]")
@json_option
@click.option("--no-browser", is_flag=True, help="Print the address, and open no browser.")
@click.option("--readonly", is_flag=True, help="Write nothing: no states, no tune, no export.")
def command(
    *,
    source: Source,
    target: str,
    out: Path | None,
    port: int | None,
    no_browser: bool,
    readonly: bool,
    as_json: bool,
    **given: Any,  # noqa: ANN401 - of the exporters
) -> None:
    """Open a page on this machine: change a configuration there, and see who would have waited.

    Give the run directory of a tune, or a log and its configuration. The page is for who has the address that is
    printed; Ctrl-C ends it. Nothing is loaded into a batch system.
    """
    try:
        import uvicorn
    except ImportError as error:
        raise QconfError("the page needs its server: pip install 'qconf-hpc[explore]'") from error

    import asyncio
    from secrets import token_urlsafe

    from joblib import cpu_count

    from parsim.compiling import Compiling, missing, needed, seconds
    from qconf.explore.server import Explorer, application
    from qconf.explore.states import State, States, secret
    from qconf.recommend.lock import exclusive

    site = _site(source, out, chosen(target, given))
    held = nullcontext() if readonly else exclusive(site.directory)
    with held:
        states = States(State(site.text), None if readonly else site.directory / "states.json")
        warn(states.notes)
        token = token_urlsafe(24)
        listening = _listening(port, site.directory / ".port", readonly=readonly)
        token = token if readonly else secret(site.directory / ".token", token)
        number = listening.getsockname()[1]
        explorer = Explorer(site, states, readonly=readonly)
        first = needed(site.base.system())
        names = sorted(missing(), key=lambda name: name not in first)  # all kernels that a change may need
        click.get_current_context().call_on_close(Compiling(seconds(names), cpu_count()).stop)
        address = f"http://127.0.0.1:{number}/?token={token}"
        jobs = len(site.history)
        if as_json:
            click.echo(written({"address": address, "jobs": jobs, "directory": str(site.directory)}), nl=False)
        else:
            say(f"{jobs} jobs on {site.base.machine.name}. Open this address in a browser; Ctrl-C ends it:")
            click.echo(address)
        if not no_browser and any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY")):
            import webbrowser

            webbrowser.open(address)
        settings = uvicorn.Config(
            application(explorer, token, number), log_level="critical", lifespan="off", ws="none", server_header=False,
            timeout_graceful_shutdown=1,
        )  # fmt: skip

        async def serve() -> None:
            explorer.begin()
            await uvicorn.Server(settings).serve(sockets=[listening])

        try:
            with suppress(KeyboardInterrupt):
                asyncio.run(serve())
        finally:
            explorer.close()
        if as_json:
            return
        click.echo("")
        say("Nothing was kept." if readonly else f"The states are kept in {site.directory}.")


def _site(source: Source, out: Path | None, exporter: Exporter) -> Site:
    """Read the site to explore: a run and its log, or a log with its configuration."""
    from qconf.config import dump
    from qconf.explore.site import Site, past_run
    from qconf.export.precision import met
    from qconf.history import clean
    from qconf.prediction.runtimes import with_estimates
    from qconf.report.run_directory import RECORD

    if missing := next((path for path in source.history if not path.exists()), None):
        raise InputError("there is no such file or run directory", file=missing, fix="check the path")
    of_run = (RECORD, "report.html")  # the record may be missing
    directory = next((path for path in source.history if any((path / name).exists() for name in of_run)), None)
    run: PastRun | None = None
    if directory is not None:
        run = past_run(directory, [path for path in source.history if path != directory])
        source = replace(source, history=run.logs, site=run.base, timezone=source.timezone or run.timezone)
    elif source.config_path is None:
        raise click.UsageError("Give the run directory of a tune, or a log and --config.")
    wait = source.compile()
    records = source.records()

    def cut(config: SiteConfig) -> tuple[History, tuple[History, ...]]:
        log = with_estimates(clean(source.records() if config is not base else records, config), config)
        if run is None:
            jobs = source.cut(log)
            earlier = [] if source.month is None else log.months_before(jobs.span[0])
        else:
            first, last = (second - log.epoch for second in run.span)
            jobs = log.between(first, last + 1)
            earlier = log.months_before(jobs.span[0]) if run.has_earlier else []
        return jobs, tuple(earlier)

    base = source.config(records)
    history, earlier = cut(base)
    if not len(history):
        raise InputError("holds no job of this period", file=source.history[0])
    defaults = strategy_settings(source.config_path, {}, orders=exporter.orders)
    settings = defaults if run is None else defaults | {k: v for k, v in run.settings.items() if k in defaults}
    text = dump(base) if source.config_path is None else source.config_path.read_text(encoding="utf-8-sig")
    wait()
    return Site(
        base=base,
        text=text,
        history=history,
        earlier=earlier,
        settings=settings,
        directory=(out or directory or Path("reports", stem(source.history[0]))) / FOLDER,
        exporter=exporter.meeting(met(history), history if source.anonymous is None else None),
        read=cut,
        recommended=None if run is None else run.recommended,
        title="" if run is None else run.title,
    )


def _listening(port: int | None, kept: Path, *, readonly: bool) -> socket.socket:
    """Return a socket on the loopback address: at the given port, else the last used one, else a free one."""
    last = ""
    with suppress(OSError, ValueError):
        last = kept.read_text(encoding="ascii").strip()
    wanted = [port] if port is not None else [*([int(last)] if last.isdigit() else []), 0]
    for number in wanted:
        found = socket.socket()
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            found.bind(("127.0.0.1", number))
        except OSError as error:
            found.close()
            if port is not None:
                fix = "choose another, or leave it out for a free one"
                raise InputError(f"is in use: {error.strerror}", field="--port", value=port, fix=fix) from error
            continue
        found.listen()
        if not readonly:
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_text(str(found.getsockname()[1]), encoding="ascii")
        return found
    raise QconfError("no port of this machine is free")
