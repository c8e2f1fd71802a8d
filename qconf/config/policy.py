"""The site's policy in a configuration: parts that no search changes unless the site allows it."""

from __future__ import annotations

from collections.abc import Mapping

from parsim.model.system import TOTAL_LIMITS, USER_LIMITS

#: Parts of the policy, and the fields of a queue that belong to each.
POLICY: Mapping[str, tuple[str, ...]] = {
    "limits": TOTAL_LIMITS,
    "user-limits": USER_LIMITS,
    "starvation": ("starvation",),
    "priorities": ("priority",),
    "fairshare": (),  # whether the order reads shares
    "qos": (),  # whether the order reads the QOS of jobs
    "shortpools": (),  # the configuration's `shortpools`
    "sharing": (),  # `exclusive` of queues and of types of nodes
}
KEEP, MAY_CHANGE = "keep", "may-change"
FORMS = f"{KEEP}, {MAY_CHANGE}, or either for each of {', '.join(POLICY)}, like {{limits: {MAY_CHANGE}}}"


def parse_policy(value: object) -> tuple[str, ...]:
    """Return the parts that may change; ValueError if the value is not a policy."""
    if value in (KEEP, MAY_CHANGE):
        return tuple(POLICY) if value == MAY_CHANGE else ()
    if isinstance(value, Mapping):
        parts = {part: parse_policy(each) if isinstance(each, str) else None for part, each in value.items()}
        if not set(parts) - set(POLICY) and None not in parts.values():
            return tuple(part for part in POLICY if parts.get(part))
    elif isinstance(value, tuple) and not set(map(str, value)) - set(POLICY):
        return tuple(part for part in POLICY if part in value)
    raise ValueError("no policy")


def policy_text(parts: tuple[str, ...]) -> str:
    """Format the parts that may change as in a configuration file."""
    if set(parts) == set(POLICY):
        return MAY_CHANGE
    return "{" + ", ".join(f"{part}: {MAY_CHANGE}" for part in parts) + "}"
