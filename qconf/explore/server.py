"""The server of the page: it keeps the state, lets copies of itself simulate, and sends their results.

It serves one user on this machine. Requests need the cookie that the printed address sets; a request from another page,
or to another host name, is refused.
"""

from __future__ import annotations

import asyncio
import json
import re
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from qconf.config import ConfigError, SiteConfig, dump
from qconf.errors import InputError, QconfError
from qconf.explore import fields
from qconf.explore.results import Message, Results, Wanted, tuned
from qconf.explore.site import Site
from qconf.explore.states import State, States
from qconf.forked import Beside
from qconf.report import charts

COOKIE = "qconf"
MOST = 1 << 20  #: most bytes of a request
PAUSE = 0.02  #: seconds to wait for further changes before a simulation
TYPED = 1.0  #: seconds within which further values of a field (digits, a drag) are the same step of undo
ALIVE = 15.0  #: seconds of silence after which a page gets a comment
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)
#: Policy for files of the run: their own scripts run, without access to this page.
APART = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; sandbox allow-scripts"
)
Work = Callable[[Callable[[object], None]], object]  #: work for a copy of this process, which sends results
PAGE = {"page.css": "text/css", "page.js": "text/javascript", "charts.js": "text/javascript"}


class Guard:
    """Lets through only requests from the page."""

    def __init__(self, app: ASGIApp, token: str, port: int) -> None:
        self.app, self.token, self.cookie = app, token, f"{COOKIE}-{port}"
        self.hosts = {f"{name}:{port}" for name in ("127.0.0.1", "localhost")}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse a request, or pass it on."""
        if scope["type"] != "http":
            return
        request = Request(scope)
        await (self._refused(request) or self.app)(scope, receive, send)

    def _refused(self, request: Request) -> Response | None:
        host, origin = request.headers.get("host", ""), request.headers.get("origin")
        if host not in self.hosts:
            return _refusal("this address is not the one that qconf explore printed")
        if origin is not None and origin != f"http://{host}":
            return _refusal("another page has no business here")
        given = request.query_params.get("token")
        if request.url.path == "/" and given is not None and _same(given, self.token):
            found = RedirectResponse("/", 303)
            found.set_cookie(self.cookie, self.token, httponly=True, samesite="strict")
            return found
        if not _same(request.cookies.get(self.cookie, ""), self.token):
            return _refusal("open the address that qconf explore printed: it has the token that is missing here")
        if request.method == "POST" and request.headers.get("content-type") != "application/json":
            return _refusal("only JSON is read")
        return None


def _same(given: str, token: str) -> bool:
    return secrets.compare_digest(given.encode(), token.encode())


def _refusal(why: str) -> Response:
    return Response(f"qconf explore: {why}.\n", 403, media_type="text/plain")


class Explorer:
    """One exploration: its states, its running work, and the pages that show it."""

    def __init__(self, site: Site, states: States, *, readonly: bool = False) -> None:
        self.site, self.states, self.readonly = site, states, readonly
        self.results = Results(site)
        self.against = ""  #: name of the state to compare with; empty: the configuration in force
        self.serial = 0
        self.last: dict[str, Message] = {}  #: the last message of each kind
        self.readers: set[asyncio.Event] = set()
        self.work: dict[str, Beside] = {}  #: running work by purpose
        self._start: asyncio.TimerHandle | None = None
        self._typed: tuple[object, float] = None, 0.0  #: client and field of the last change, and its time
        self.runs = 0

    # Messages to pages

    def publish(self, message: Message) -> None:
        """Send a message to all pages; it replaces the last one of its kind."""
        self.last[message["kind"]] = message
        for reader in self.readers:
            reader.set()

    async def events(self) -> AsyncIterator[str]:
        """Yield messages as server-sent events, first those already known."""
        new, sent = asyncio.Event(), dict[str, Message]()
        self.readers.add(new)
        try:
            while True:
                for kind, message in [*self.last.items()]:
                    if sent.get(kind) is not message:
                        sent[kind] = message
                        yield f"data: {json.dumps(message)}\n\n"
                new.clear()
                try:
                    await asyncio.wait_for(new.wait(), ALIVE)
                except TimeoutError:
                    yield ": alive\n\n"
        finally:
            self.readers.discard(new)

    # The state

    def begin(self) -> None:
        """Show the current state."""
        self.states.write()
        self.show("", "")

    def show(self, client: str, what: str, *, same: bool = False) -> None:
        """Send the current state to all pages, with the client that made it, and simulate it unless it is the same."""
        states, state = self.states, self.states.now
        config = state.config
        if not same:
            self.serial += 1
            for kind in ("numbers", "ranges", "failed"):
                self.last.pop(kind, None)
        self.publish(
            {"kind": "state", "serial": self.serial, "client": client, "what": what, "against": self.against}
            | {"text": state.text, "load": state.load, "stretch": state.stretch}
            | {"undo": states.place > 0, "redo": states.place + 1 < len(states.line), "named": [*states.named]}
            | {
                "warnings": [_by_name(each, config) for each in config.warnings()],
                "document": fields.document(config, self.site.base),
            }
        )
        if same:
            return
        if self._start is not None:
            self._start.cancel()
        self.stop("numbers")
        self._start = asyncio.get_running_loop().call_later(PAUSE, self._simulate)

    def wanted(self) -> Wanted:
        """Return what to simulate for the current state."""
        state = self.states.now
        other = self.states.named.get(self.against)
        before = self.site.base if other is None else other.config
        return Wanted(state.config, before, state.stretch, state.load)

    def _simulate(self) -> None:
        wanted, serial = self.wanted(), self.serial
        try:
            self.results.prepare(wanted)
        except QconfError as error:
            self.publish({"kind": "failed", "serial": serial, "why": str(error)})
            return

        def received(message: Message) -> None:
            if message["kind"] == "known":
                self.results.keep(message["key"], message["value"])
            else:
                self.publish(message | {"serial": serial})

        def ended(error: Exception | None) -> None:
            if error is not None:
                self.publish({"kind": "failed", "serial": serial, "why": str(error)})

        self.run("numbers", _sent(self.results.stream(wanted)), received, ended)

    def run(
        self,
        what: str,
        work: Work,
        received: Callable[[Message], None],
        ended: Callable[[Exception | None], None],
    ) -> None:
        """Do some work in a copy of this process; running work for the same purpose is stopped."""
        self.stop(what)
        loop, beside = asyncio.get_running_loop(), Beside(work)
        self.work[what] = beside

        def ready() -> None:
            try:
                received(beside.receive())
            except Exception as error:  # noqa: BLE001 - shown on the page
                self.stop(what)
                ended(None if isinstance(error, EOFError) else error)

        loop.add_reader(beside.fileno(), ready)

    def stop(self, what: str) -> None:
        """Stop the work for a purpose, if there is any."""
        if (beside := self.work.pop(what, None)) is not None:
            asyncio.get_running_loop().remove_reader(beside.fileno())
            beside.stop()

    async def once(self, work: Work) -> Message:
        """Return the last message of `work`, done in a copy of this process, which no other request stops."""
        done: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        found: list[Message] = []

        def ended(error: Exception | None) -> None:
            if not done.done():
                if error is not None or not found:
                    done.set_exception(error or QconfError("it ended before it was done"))
                else:
                    done.set_result(found[-1])

        self.run(f"request {id(done)}", work, found.append, ended)
        return await done

    def close(self) -> None:
        """Stop all work."""
        for beside in self.work.values():
            beside.stop()
        self.work.clear()

    # Requests of pages

    def change(self, given: Mapping[str, Any]) -> None:
        """Change the state as requested. Raises ConfigError or InputError; then nothing is changed."""
        try:
            state, what = self._changed(given)
        except (TypeError, ValueError, AttributeError) as error:
            raise InputError("is no change", field="request") from error
        _ = state.config
        self.results.check(state.stretch)
        client = str(given.get("client", ""))
        (typed, last), now = self._typed, time.monotonic()
        self._typed = (client, what) if client and {"set", "terms", "load"} & {*given} else None, now
        self.states.go(state, instead=typed is not None and typed == self._typed[0] and now - last < TYPED)
        self.show(client, what)

    def _changed(self, given: Mapping[str, Any]) -> tuple[State, str]:
        """Return the requested state, and the names of its changes."""
        now = self.states.now
        if "state" in given:
            return State.read(given["state"]), "another state"
        if "named" in given:
            name = str(given["named"])
            return self._named(name), f"the state {name or 'in force'}"
        about = {name: given.get(name, getattr(now, name)) for name in ("load", "stretch")}
        if "text" in given:
            return State.read({"text": given["text"], **about}), "the YAML"
        values = {str(path): str(value) for path, value in given.get("set", {}).items()}
        if "terms" in given:
            terms = [(float(points), str(text)) for points, text in given["terms"]]
            values["order"] = json.dumps(fields.formula(terms))
        config, work = now.config, self.results.period.core_seconds
        if "back" in given:
            changed = fields.restored(config, self.site.base, str(given["back"]))
        else:
            changed = fields.changed(config, values, work, order=given.get("queues"))
        text = now.text if changed == config else dump(changed)
        what = [*values, *(name for name in ("queues", *about) if name in given), *filter(None, [given.get("back")])]
        return State.read({"text": text, **about}), ", ".join(what)

    def _named(self, name: str) -> State:
        if name == "":
            return self.states.first
        if name == "recommended" and self.site.recommended is not None and name not in self.states.named:
            now = self.states.now
            return State(dump(self.site.recommended), now.load, now.stretch)
        if name not in self.states.named:
            raise InputError("there is no such state", field="name", value=name)
        return self.states.named[name]

    def step(self, given: Mapping[str, Any]) -> None:
        """Undo or redo."""
        self._typed = None, 0.0
        self.states.step(1 if given.get("by") == 1 else -1)
        self.show(str(given.get("client", "")), "a step back" if given.get("by") != 1 else "a step forward")

    def name(self, given: Mapping[str, Any]) -> None:
        """Store the current state under a name, remove one, or choose the state to compare with."""
        before = self.against
        if "against" in given:
            self.against = str(given["against"])
        else:
            self.states.name(str(given.get("name", "")), None if given.get("forget") else self.states.now)
        if self.against not in self.states.named:
            self.against = ""
        self.show(str(given.get("client", "")), "names", same=self.against == before)

    async def explain(self, given: Mapping[str, Any]) -> Message:
        """Return why a job waited, in the base and in the present state."""
        job = str(given.get("job", "")).strip()
        return await self.once(_sent(self.results.explain(self.wanted(), job)))

    async def export(self, given: Mapping[str, Any]) -> Message:
        """Write the scripts for the present state, and the plan for loading them."""
        folder = re.sub(r"[^A-Za-z0-9._-]+", "-", str(given.get("name", ""))).strip(".-")[:64] or "state"
        target = self.site.directory / "exports" / folder / self.site.exporter.target
        results, config = self.results, self.states.now.config
        found = await self.once(lambda send: send(results.export(config, target)))
        return found | {"place": str(target.relative_to(self.site.directory.parent))}

    def tune(self, given: Mapping[str, Any]) -> None:
        """Start a tune from the current state, with some paths fixed; or stop it."""
        if given.get("stop"):
            self.stop("tune")
            self.publish({"kind": "tuning", "share": None, "what": "stopped"})
            return
        config = self.states.now.config
        locked = [str(path) for path in given.get("fixed", ())]
        config = config.replace(fixed=tuple(dict.fromkeys((*config.fixed, *locked))))
        self.runs += 1
        while (directory := self.site.directory / "tuned" / str(self.runs)).exists():
            self.runs += 1
        self.publish({"kind": "tuning", "share": 0.0, "what": "reading the log"})
        site, state, number = self.site, self.states.now, self.runs

        def received(message: Message) -> None:
            if message["kind"] == "tuned":
                if message["text"]:
                    name = f"tuned {number}"
                    self.states.name(name, State(message["text"], state.load, state.stretch))
                    message |= {"name": name}
                message |= {"place": str(directory.relative_to(self.site.directory.parent))}
                self.show("", "names", same=True)
            self.publish(message | {"kind": "tuning"})

        def ended(error: Exception | None) -> None:
            if error is not None:
                self.publish({"kind": "tuning", "share": None, "what": str(error)})

        self.run("tune", lambda send: send(tuned(site, config, directory, send)), received, ended)


def _sent(messages: Iterator[Message]) -> Work:
    """Return work that sends messages while they are computed."""

    def work(send: Callable[[object], None]) -> None:
        for message in messages:
            send(message)

    return work


def application(explorer: Explorer, token: str, port: int) -> ASGIApp:
    """Return the web application of the page."""
    page, site = files("qconf.explore") / "page", explorer.site
    root = site.directory.parent.resolve()

    def reply(content: str | bytes, kind: str) -> Response:
        headers = {"content-security-policy": POLICY, "x-content-type-options": "nosniff"}
        headers |= {"referrer-policy": "no-referrer", "cache-control": "no-store"}
        return Response(content, media_type=kind, headers=headers)

    async def index(_: Request) -> Response:
        return reply((page / "index.html").read_text(encoding="utf-8"), "text/html")

    async def part(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in PAGE:
            return Response(status_code=404)
        text = charts.script() if name == "charts.js" else (page / name).read_text(encoding="utf-8")
        return reply(text, PAGE[name])

    async def about(_: Request) -> Response:
        return JSONResponse(_about(explorer))

    async def events(_: Request) -> Response:
        return StreamingResponse(
            explorer.events(), media_type="text/event-stream", headers={"cache-control": "no-store"}
        )

    async def run_file(request: Request) -> Response:
        path = (root / request.path_params["path"]).resolve()
        hidden = any(each.startswith(".") for each in Path(request.path_params["path"]).parts)
        if hidden or not path.is_relative_to(root) or not path.is_file():
            return Response("qconf explore: there is no such file of this run.\n", 404, media_type="text/plain")
        kind = {".html": "text/html", ".svg": "image/svg+xml"}.get(path.suffix, "text/plain")
        return FileResponse(path, media_type=kind, headers={"content-security-policy": APART})

    def action(
        work: Callable[[Mapping[str, Any]], Message | Awaitable[Message] | None], *, writes: bool = False
    ) -> Callable[[Request], Awaitable[Response]]:
        async def call(request: Request) -> Response:
            if writes and explorer.readonly:
                return _mistake(QconfError("nothing is written: qconf explore was begun with --readonly"))
            try:
                found = work(await _body(request))
                found = await found if isinstance(found, Awaitable) else found
            except QconfError as error:
                return _mistake(error, explorer.states.now.config)
            return JSONResponse(found or {})

        return call

    actions = {"change": explorer.change, "step": explorer.step, "name": explorer.name, "explain": explorer.explain}
    writing = {"export": explorer.export, "tune": explorer.tune}
    routes = [
        Route("/", index),
        Route("/page/{name}", part),
        Route("/api/site", about),
        Route("/api/events", events),
        Route("/run/{path:path}", run_file),
        *(Route(f"/api/{name}", action(work), methods=["POST"]) for name, work in actions.items()),
        *(Route(f"/api/{name}", action(work, writes=True), methods=["POST"]) for name, work in writing.items()),
    ]
    return Guard(Starlette(routes=routes), token, port)


def _about(explorer: Explorer) -> Message:
    site = explorer.site
    history = site.history
    first, last = history.span
    return {
        "machine": site.base.machine.name,
        "jobs": len(history),
        "first": history.date(first),
        "last": history.date(last),
        "timezone": history.timezone,
        "recommended": site.title if site.recommended is not None else None,
        "orders": fields.orders(site.base, site.recommended),
        "factors": fields.factors(),
        "readonly": explorer.readonly,
        "target": site.exporter.name,
        "notes": explorer.states.notes,
        "directory": str(site.directory),
    }


async def _body(request: Request) -> dict[str, Any]:
    """Return the JSON object of a request. Raises InputError."""
    data = bytearray()
    async for part in request.stream():
        data += part
        if len(data) > MOST:
            raise InputError("is too long", field="request")
    found = None
    with suppress(ValueError, RecursionError):
        found = json.loads(data)
    if not isinstance(found, dict):
        raise InputError("is no JSON object", field="request")
    return found


def _mistake(error: QconfError, config: SiteConfig | None = None) -> Response:
    """Return a response with each mistake at the path of its field."""
    if isinstance(error, ConfigError):
        found = [
            {"path": _by_name(each.path, config), "line": each.line, "message": each.message} for each in error.problems
        ]
    else:
        found = [{"path": getattr(error, "field", None) or "", "line": None, "message": str(error)}]
    return JSONResponse({"problems": found}, 422)


def _by_name(path: str, config: SiteConfig | None) -> str:
    """Replace indices in a path by names: ``queues.small.max_run`` for ``queues[0].max_run``."""

    def named(match: re.Match[str]) -> str:
        parts = () if config is None else getattr(config, match[1])
        place = int(match[2])
        return f"{match[1]}.{parts[place].name}" if place < len(parts) else match[0]

    return re.sub(r"^(queues|nodes)\[([0-9]+)\]", named, path)
