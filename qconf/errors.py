"""The errors that a user sees, each with one clear message."""

from __future__ import annotations

from pathlib import Path

from qconf.inert import inert, shorten


class QconfError(Exception):
    """A message for the user in the terminal; the command ends with exit code 1."""


class ExportError(QconfError):
    """The batch system cannot express the configuration, or something given with it."""


class InputError(QconfError):
    """A mistake in an input: file, line, field and value, what is wrong and what to do.

    Parameters
    ----------
    message : str
        What is wrong.
    file, line, field, value : optional
        The place, as far as known.
    fix : str, optional
        What to do, a sentence without a full stop, or a question with its mark.
    """

    def __init__(
        self,
        message: str,
        *,
        file: str | Path | None = None,
        line: int | None = None,
        field: str | None = None,
        value: object = None,
        fix: str | None = None,
    ) -> None:
        self.file, self.line, self.field, self.value, self.fix = file, line, field, value, fix
        place = "" if file is None else inert(str(file)) + ("" if line is None else f", line {line}") + ": "
        subject = "" if field is None else f"{field}" + ("" if value is None else f" = {shorten(repr(value))}") + ": "
        stop = "" if message.endswith("?") else "."
        end = "" if fix is None else f"{stop} {fix[0].upper()}{fix[1:]}{'' if fix.endswith('?') else '.'}"
        super().__init__(place + subject + message + end)


def unreadable(path: str | Path, error: OSError) -> InputError:
    """Return the error for a file that the system does not let us read."""
    message = f"cannot be read: {error.strerror or error}"
    return InputError(message, file=path, fix="check the path and its permissions")
