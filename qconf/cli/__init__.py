"""The command line: one module per command."""

from __future__ import annotations

import importlib
import io
import os
import signal
import sys
from itertools import takewhile
from pathlib import Path
from typing import Any, TextIO

import click

from qconf import __version__
from qconf.cli.interrupts import Terminated, take_interrupts
from qconf.cli.progress import interrupt_message, what_is_left
from qconf.errors import QconfError
from qconf.inert import inert

#: Commands in the order of the help, that of a first visit. Each is the module of its name.
COMMANDS = (
    *("tune", "explore", "runs", "compare", "backtest", "simulate", "predict", "fidelity", "policies", "inspect"),
    *("import", "init", "export", "synth"),
)
#: Retired commands, and what replaces them.
GONE = {"rehearse": "a rehearsal is of a checkout: python -m tests.servers DIR --current FILE"}


class Commands(click.Group):
    """The group of commands: each is imported when called, and its heavy dependencies only while it runs."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands, in the order of the help."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module of a command, and return the command; None if there is none. `import` is in import_.py."""
        del ctx
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"{__name__}.{cmd_name}{'_' if cmd_name == 'import' else ''}")
        command: click.Command = module.command
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:  # noqa: ANN401 - of click
        """Return the command of the first argument. For an unknown name, the UsageError suggests a similar one."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from qconf.config.problems import did_you_mean

            if args[0] in GONE:
                raise click.UsageError(f"No such command '{args[0]}': {GONE[args[0]]}", ctx) from error
            if near := did_you_mean(args[0], COMMANDS):
                raise click.UsageError(f"No such command '{inert(args[0])}'{near}", ctx) from error
            raise

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 - whatever the command returns
        """Run the command. An interrupt prints one line and exits with 130, SIGTERM with 143, as shells do."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as interrupt:
            exec("")  # noqa: S102 - Python remembers one within a text that it executes, and `-m` dies of it at the end
            click.echo("\n" * sys.stderr.isatty() + f"qconf: {interrupt_message(ctx)}", err=True)
            ctx.exit(128 + (signal.SIGTERM if isinstance(interrupt, Terminated) else signal.SIGINT))
        except QconfError as error:
            if left := what_is_left(ctx):
                error.add_note(left)
            raise


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="qconf")
@click.option("--debug", is_flag=True, help="Show a traceback when something goes wrong.")
def qconf(debug: bool) -> None:
    """Find the configuration of queues and scheduler that would have served your jobs best."""
    del debug


def one_blas_thread() -> None:
    """Set linear algebra to one thread: the rounding of sums depends on the number of threads.

    Call this before numpy is imported.
    """
    os.environ |= dict.fromkeys(("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"), "1")


def safe_path() -> None:
    """Keep started processes, joblib's among them, from importing modules of the current folder."""
    os.environ["PYTHONSAFEPATH"] = "1"


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; a domain error is one message on stderr and exit code 1."""
    one_blas_thread()
    safe_path()
    given = sys.argv[1:] if arguments is None else arguments
    debug = "--debug" in takewhile(lambda word: word.startswith("-"), given)  # else it belongs to a command
    sys.stdout, sys.stderr = _forgiving(sys.stdout), _forgiving(sys.stderr)
    take_interrupts()
    try:
        qconf.main(args=given, prog_name="qconf", standalone_mode=True)
    except QconfError as error:
        if debug:
            raise
        for line in (error, *getattr(error, "__notes__", ())):
            click.echo(f"qconf: {line}", err=True)
        sys.exit(1)
    except OSError as error:
        if debug:
            raise
        what = inert(str(error.filename or "the output cannot be written"))
        click.echo(f"qconf: {what}: {error.strerror or error}", err=True)
        os._exit(1)  # else Python would try once more to write what is left
    finally:
        if arguments is None:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # Python sets it back at its end, and a second one would kill


class _Pipe(io.FileIO):
    """A file that discards what is written after its reader, like `head`, has closed the pipe; the program goes on."""

    def write(self, data: Any, /) -> int | None:  # type: ignore[override]  # noqa: ANN401
        """Write data; return its length even if the pipe is closed."""
        try:
            return super().write(data)
        except BrokenPipeError:
            return memoryview(data).nbytes


class _Inert(io.TextIOWrapper):
    """A stream that escapes control characters; `styled` is the same stream without escapes, for coloured output."""

    styled: io.TextIOWrapper

    def write(self, text: str, /) -> int:
        """Write text with invisible characters escaped."""
        return super().write(inert(text, lines=True))


def _forgiving(stream: TextIO | None) -> TextIO:
    """Return the stream with escapes, and without errors of a closed pipe; a stream without file as it is."""
    if stream is None:  # closed before the program began
        return Path(os.devnull).open("w", encoding="utf-8")
    try:
        pipe = _Pipe(stream.fileno(), "w", closefd=False)
    except (AttributeError, OSError):
        return stream
    buffer, about = io.BufferedWriter(pipe), {"encoding": stream.encoding, "errors": "backslashreplace"}
    found = _Inert(buffer, **about, line_buffering=bool(stream.line_buffering), write_through=True)
    found.styled = io.TextIOWrapper(buffer, **about, line_buffering=bool(stream.line_buffering), write_through=True)
    return found


if __name__ == "__main__":
    main()
