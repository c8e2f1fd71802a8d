"""Replace the names of users and groups by numbers right after reading, so that no output holds a name."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace

import pandas as pd

from qconf.config import QOSConfig, QueueConfig, ShareConfig, SiteConfig, Target, ThrottleConfig
from qconf.history.records import Records


@dataclass
class Names:
    """Pseudonyms like ``user3`` and ``group1``, numbered by first appearance and the same throughout a run."""

    users: dict[str, str] = field(default_factory=dict)
    groups: dict[str, str] = field(default_factory=dict)

    def records(self, found: Records) -> Records:
        """Return a copy of the records with pseudonyms for users, groups and accounts."""
        # The text of an unreadable record may hold a name: a torn line, or a row shifted by a column.
        dropped = found.dropped.assign(detail="")
        return replace(found, table=self._table(found.table), gone=self._table(found.gone), dropped=dropped)

    def config(self, found: SiteConfig) -> SiteConfig:
        """Return a copy of the configuration with pseudonyms in targets, access, QOS, throttles and shares."""
        inner = {each.group for each in found.shares}
        return found.replace(
            targets=tuple(map(self._target, found.targets)),
            queues=tuple(map(self._queue, found.queues)),
            qos=tuple(map(self._qos, found.qos)),
            throttles=tuple(map(self._throttle, found.throttles)),
            shares=tuple(self._share(each, inner) for each in found.shares),
        )

    def _table(self, table: pd.DataFrame) -> pd.DataFrame:
        kinds = {"user": "user", "group": "group", "account": "group"}
        return table.assign(**{name: self._column(table[name], kind) for name, kind in kinds.items()})

    def _column(self, texts: pd.Series, kind: str) -> pd.Series:
        for text in texts.unique():
            self._name(str(text), kind)
        return texts.map(lambda text: self._name(str(text), kind)).astype(texts.dtype)

    def _name(self, text: str, kind: str) -> str:
        known = self.users if kind == "user" else self.groups
        return text if text in ("", "*") else known.setdefault(text, f"{kind}{len(known) + 1}")

    def _target(self, target: Target) -> Target:
        group = None if target.group is None else self._name(target.group, "group")
        return target.model_copy(update={"group": group, "users": self._all(target.users, "user")})

    def _queue(self, queue: QueueConfig) -> QueueConfig:
        if queue.access is None:
            return queue
        kinds = {"users": "user", "groups": "group", "accounts": "group"}
        listed = {
            name: self._all(texts, kind) for name, kind in kinds.items() if (texts := getattr(queue.access, name))
        }
        return queue.model_copy(update={"access": queue.access.model_copy(update=listed)})

    def _qos(self, qos: QOSConfig) -> QOSConfig:
        kinds = {"users": "user", "accounts": "group", "groups": "group"}
        names = {field: tuple(self._name(name, kind) for name in getattr(qos, field)) for field, kind in kinds.items()}
        return qos.model_copy(update=names)

    def _throttle(self, throttle: ThrottleConfig) -> ThrottleConfig:
        names = {kind: self._name(name, kind) for kind in ("user", "group") if (name := getattr(throttle, kind))}
        return throttle.model_copy(update=names)

    def _share(self, share: ShareConfig, inner: Collection[str | None]) -> ShareConfig:
        kind = "group" if share.name in inner else "user"  # a leaf is a user
        group = None if share.group is None else self._name(share.group, "group")
        return share.model_copy(update={"name": self._name(share.name, kind), "group": group})

    def _all(self, texts: Iterable[str], kind: str) -> tuple[str, ...]:
        """Replace the names in entries like ``+alice@*``; the sign and the host stay."""
        found = []
        for text in texts:
            sign = text[:1] if text[:1] in "+-" else ""
            name, at, host = text[len(sign) :].partition("@")
            found.append(f"{sign}{self._name(name, kind)}{at}{host}")
        return tuple(found)
