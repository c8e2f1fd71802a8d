"""A small model of a PBS server: what it takes from qmgr, and what its `print server` prints.

Written from samples of the real server and shares no code with the package, so that it can check it; which values a
server takes, a real one says (`tests/real_pbs`). Statements are split the way qmgr does: lines ending in a backslash
are joined, `#` after white space starts a comment, `;` separates, quotes have no escape.
"""

import re

LISTS = {"route_destinations", "acl_users", "acl_groups"}
LIMITS = {"max_run", "max_queued", "max_run_soft"}  # printed with a statement for each scope


class RefusedError(Exception):
    pass


def is_route(attributes):
    return attributes.get("queue_type", "").lower().startswith("r")


def commands(text):
    """Split a script as qmgr does."""
    out, line = [], ""
    for physical in text.split("\n"):
        line += physical.removesuffix("\\")
        if physical.endswith("\\"):  # the line as it was read, not what it has been joined to
            continue
        piece, quote, previous = "", "", " "
        for char in line:
            if quote:
                piece += char
                quote = "" if char == quote else quote
            elif char in "'\"":
                piece, quote = piece + char, char
            elif char == ";":
                out.append(piece)
                piece = ""
            elif char == "#" and previous.isspace():
                break
            else:
                piece += char
            previous = char
        if quote:
            raise RefusedError(f"open quote in {line!r}")
        out.append(piece)
        line = ""
    return [piece.strip() for piece in out if piece.strip()]


class PbsServer:
    def __init__(self, printed=""):
        self.server, self.queues, self.resources, self.nodes = {}, {}, {}, {}
        self.printing = True
        self.load(printed)
        self.printing = False

    def load(self, text):
        """Take a script as `qmgr -a` does: stop, with RefusedError, at the first error."""
        for command in commands(text):
            self.take(command)

    def take(self, command):
        match = re.fullmatch(r"(create|delete|set|unset) (server|queue|resource|node)(?: (.*))?", command)
        if not match:
            raise RefusedError(command)
        verb, kind, rest = match.groups()
        if kind == "server":
            self.change(self.server, verb, rest, command)
            return
        names, _, rest = rest.partition(" ")
        for name in names.split(","):
            if kind == "node":
                self.change(self.nodes.setdefault(name, {}), verb, rest, command)
                continue
            held = self.queues if kind == "queue" else self.resources
            if (verb == "create") == (name in held):
                raise RefusedError(f"{'15025' if verb == 'create' else '15018'} {command}")
            if verb == "delete":
                if kind == "resource" and any(
                    key.endswith(f".{name}")
                    for holder in (*self.queues.values(), *self.nodes.values())
                    for key in holder
                ):
                    raise RefusedError(f"resource busy: {command}")
                del held[name]
                continue
            self.change(held.setdefault(name, {}), verb, rest, command)

    def change(self, attributes, verb, rest, command):
        for setting in self.settings(rest or "", verb, command):
            key, operator, value = setting
            if verb == "unset":
                attributes.pop(key, None)
                continue
            needed = {"queue_type", "route_destinations"} if is_route(attributes) else {"queue_type"}
            if key in ("enabled", "started") and not (self.printing or needed <= attributes.keys()):
                raise RefusedError(f"15030 {command}")
            if key == "default_queue" and value not in self.queues:
                raise RefusedError(f"15018 {command}")
            if key in LISTS:
                items = [item.strip() for item in value.split(",")]
                attributes[key] = (attributes.get(key, []) if operator == "+=" else []) + items
            elif key in LIMITS and self.printing and key in attributes:
                attributes[key] += f",{value}"
            else:
                attributes[key] = value

    def settings(self, rest, verb, command):
        while rest:
            pattern = (
                r"([\w.-]+)\s*()()" if verb == "unset" else r"([\w.-]+)\s*(\+?=)\s*(\"[^\"]*\"|'[^']*'|[^,\"'\s]+)"
            )
            match = re.match(pattern, rest)
            if not match:
                raise RefusedError(f"syntax: {command}")
            yield match[1], match[2], match[3].strip("\"'")
            rest = rest[match.end() :].strip()
            if rest and not rest.startswith(","):
                raise RefusedError(f"syntax: {command}")
            rest = rest[1:].strip()

    def printed(self):
        """What `qmgr -c "print server"` prints, attributes in the order of their names."""
        out = ["#"]
        if self.resources:
            out += ["# Create resources and set their properties.", "#"]
            for name, attributes in self.resources.items():
                out += ["#", f"# Create and define resource {name}", "#", f"create resource {name}"]
                out += [f"set resource {name} {key} = {attributes[key]}" for key in ("type", "flag")]
        if self.queues:
            out += ["#", "# Create queues and set their attributes.", "#"]
        for name, attributes in self.queues.items():
            out += ["#", f"# Create and define queue {name}", "#", f"create queue {name}"]
            out += self.lines(f"queue {name}", attributes)
        out += ["#", "# Set server attributes.", "#", *self.lines("server", self.server)]
        return "\n".join(out) + "\n"

    def lines(self, subject, attributes):
        for key in sorted(attributes):
            value = attributes[key]
            if isinstance(value, list):
                for i, item in enumerate(value):
                    yield f"set {subject} {key} {'=' if i == 0 else '+='} {item}"
                continue
            if key in LIMITS:
                yield from (f"set {subject} {key} = {scope}" for scope in value.split(","))
                continue
            if re.search(r"[\s,]", value):
                value = f'"{value}"'
            yield f"set {subject} {key} = {value}"

    def route(self, cores, walltime, queue="route"):
        """Name the queue in which a job lands, or None where it is turned away; `walltime` None, it names none."""

        def seconds(text):
            total = 0
            for part in text.split(":"):
                total = total * 60 + int(part)
            return total

        def admits(attributes):
            amounts = {"ncpus": cores, "walltime": walltime}
            return attributes.get("enabled") == "True" and all(
                (key.startswith("resources_max.") and amounts[key.partition(".")[2]] <= seconds(value))
                or (key.startswith("resources_min.") and amounts[key.partition(".")[2]] >= seconds(value))
                for key, value in attributes.items()
                if key.startswith(("resources_min.", "resources_max.")) and amounts[key.partition(".")[2]] is not None
            )

        if not admits(self.queues[queue]):
            return None
        for name in self.queues[queue]["route_destinations"]:
            if admits(self.queues[name]):
                return name
        return None
