"""The command line: parses arguments, calls the Python API and prints tables."""

from __future__ import annotations

import io
import os
import sys
import traceback
from importlib import import_module
from typing import Any, NoReturn, TextIO

import click

from headstack._native import InputError, RunError, catalogue_hash, take_notes_of_renamed_keys, version
from headstack.catalogue.options import KEYS, OPTIONS
from headstack.cli import start
from headstack.cli.loading import Late
from headstack.cli.renamed import note_of_name, print_notes_of_renamed_keys
from headstack.cli.start import EXIT_INTERNAL
from headstack.io import signals
from headstack.io.atomic_files import WriteError
from headstack.io.terminal import Guarded, visible

EXIT_RUN = 3
EXIT_INPUT = 2
STDOUT = "stdout"
COMPLETE = "_HEADSTACK_COMPLETE"
"""Environment variable that shells set to request completions."""

EPILOG = """\b
Exit codes:
  0   success
  1   a verdict: a disk is slow, a limit is exceeded, no candidate meets it, or
      verified data are damaged or lost
  2   bad input or usage; nothing is written
  3   a run failed, a measurement ended early, or a file cannot be written
  4   not enough data for a verdict
  70  internal error with a traceback: please report it
  128+N  ended by signal N, for example 130 by Ctrl-C
`headstack man` writes the manual, `headstack completion SHELL` completes names."""


COMMANDS = {
    "run": "simulate.runs",
    "sweep": "simulate.sweep",
    "choose": "predict.choosing",
    "explore": "simulate.explore",
    "measure": "measure.measure",
    "compare": "compare.compare",
    "trace": "traces.traces",
    "inspect": "diagnose.inspect",
    "judge": "diagnose.judge",
    "doctor": "diagnose.doctor",
    "serve": "serve",
    "crash": "crash",
    "catalog": "catalog",
    "lab": "lab",
    "demo": "demo",
    "curve": "simulate.runs",
    "measure-agent": "measure.hosts",
    "completion": "completion",
    "man": "man",
    "identify": "identify",
}
"""The modules of the commands; the last six are hidden."""

MOVED = {
    "sweep-merge": ("sweep", "merge"),
    "top": ("serve", "top"),
    "ctl": ("serve", "ctl"),
    "drives": ("catalog", "drives"),
    "arrays": ("catalog", "arrays"),
    "workloads": ("catalog", "workloads"),
    "scenarios": ("catalog", "scenarios"),
    "prices": ("catalog", "prices"),
    "replay": ("trace", "replay"),
    "plot": ("compare", "plot"),
    "study": ("lab", "study"),
    "fit": ("lab", "fit"),
    "characterize": ("lab", "characterize"),
    "predict": ("lab", "predict"),
    "validate": ("lab", "validate"),
    "twin": ("measure", "twin"),
}
"""Earlier names of commands, which still work."""


class Cli(Late):
    """The command line, which prints each failure on one line and exits with its documented code."""

    def main(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Runs a command and exits with the code that it returns, or with 0 if it returns nothing."""
        kwargs["standalone_mode"] = False
        kwargs["prog_name"] = "headstack"
        try:
            signals.install()
            sys.stdout, sys.stderr = wrap_stdout(), wrap_stderr()
            # Those of files that this process loaded before the command.
            take_notes_of_renamed_keys()
            if COMPLETE in os.environ:
                # Registers the completion classes of the shells.
                import_module("headstack.cli.completing")
            code = checked_code(super().main(*args, **kwargs))
        except click.exceptions.NoArgsIsHelpError as error:
            print(error.format_message())
            sys.exit(EXIT_INPUT)
        except click.ClickException as error:
            fail(error.format_message(), EXIT_INPUT)
        except InputError as error:
            # Closes targets, which removes the files that they created.
            import_module("traceback").clear_frames(error.__traceback__)
            fail(format_input_error(error), EXIT_INPUT)
        except WriteError as error:
            if error.filename == STDOUT:
                discard_stdout()
            fail(f"{error.filename}: cannot be written: {error.strerror}", EXIT_RUN)
        except OSError as error:
            fail(f"{error.filename}: {error.strerror}", EXIT_INPUT)
        except RunError as error:
            from headstack.cli.targets import exit_code_of_reason  # start-up time

            fail(str(error), exit_code_of_reason(str(error)))
        except (KeyboardInterrupt, click.Abort):
            fail("interrupted; nothing is written", signals.exit_code())
        except RuntimeError as error:
            if not signals.heard():
                fail_internally(error)
            # DuckDB raises this instead of the interrupt that ends a query.
            fail("interrupted; nothing is written", signals.exit_code())
        except SystemExit as error:
            # For anything but a number, Python would exit with 1, which is the code of a verdict.
            if error.code is not None and type(error.code) is not int:
                fail_internally(error)
            raise
        except GeneratorExit:
            raise
        except BaseException as error:
            # A panic of the compiled part is not an Exception.
            fail_internally(error)
        finally:
            print_notes_of_renamed_keys()
        sys.exit(code)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Finds a command. An earlier name also works, and prints the current name. A file name that is no command is
        identified."""
        if args and args[0] in MOVED:
            current = MOVED[args[0]]
            # During completion, the shell would show the message.
            if not ctx.resilient_parsing:
                note_of_name(f"headstack {args[0]}", f"headstack {' '.join(current)}")
            args = [*current, *args[1:]]
        elif args and args[0] not in COMMANDS and os.path.exists(args[0]):
            args = ["identify", *args]
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Runs a command and flushes its output."""
        try:
            code = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            # The reader (head, less) has closed the pipe.
            discard_stdout()
            return 0
        return code


class Stdout(io.FileIO):
    """Standard output, named in its write errors."""

    def write(self, data: Any, /) -> int:
        """Writes data. Raises ``WriteError`` if the write fails."""
        try:
            return super().write(data)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise WriteError(error.errno, error.strerror, STDOUT) from None


def wrap_stdout() -> TextIO:
    """Returns standard output, wrapped so that write errors name it."""
    original = sys.stdout
    try:
        raw = Stdout(original.fileno(), "wb", closefd=False)
    except (AttributeError, OSError):
        # Closed, or replaced by another program.
        return original
    original.flush()
    return Guarded(
        io.BufferedWriter(raw),
        original.encoding,
        original.errors,
        line_buffering=original.isatty(),
        write_through=False,
    )


def wrap_stderr() -> TextIO:
    """Returns standard error, wrapped so that control characters are escaped on a terminal."""
    original = sys.stderr
    try:
        raw = io.FileIO(original.fileno(), "wb", closefd=False)
    except (AttributeError, OSError):
        return original
    original.flush()
    return Guarded(io.BufferedWriter(raw), original.encoding, original.errors, line_buffering=True)


def discard_stdout() -> None:
    """Redirects standard output to /dev/null, so that Python does not retry a failed write at exit."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)


def fail(message: str, code: int) -> NoReturn:
    """Prints one line on stderr and exits."""
    print(visible(f"headstack: {' '.join(message.split())}"), file=sys.stderr)
    sys.exit(code)


def checked_code(code: object) -> int:
    """Returns the exit code that a command returned, or 0 if it returned ``None``. Raises ``TypeError`` for anything
    but a number."""
    if code is None:
        return 0
    if type(code) is not int:
        raise TypeError(f"a command returned {code!r} as its exit code")
    return code


def fail_internally(error: BaseException) -> NoReturn:
    """Prints the traceback and one line, and exits with the code of internal errors."""
    traceback.print_exception(error)
    fail(
        f"internal error: {type(error).__name__}: {error}; please report it with the traceback above and the output of "
        "headstack --version",
        EXIT_INTERNAL,
    )


def format_input_error(error: InputError) -> str:
    """Formats an input error. Names the option as typed, even if the error names the key that the option sets."""
    if error.key is None or error.file is not None:
        return str(error)
    if error.key in {option.name for option in OPTIONS}:
        return f"{_option(error.key)}: {error.message}"
    typed = {argument.partition("=")[0] for argument in sys.argv[1:]}
    # A key of the Python package has the name of the option.
    named = [_option(key) for key in error.key.split(", ")]
    if typed.issuperset(named):
        return f"{', '.join(named)}: {error.message}"
    for key, name in KEYS.items():
        if _option(name) in typed and (error.key == key or error.key.startswith(f"{key}.")):
            return f"{_option(name)}: {error.message}"
    return str(error)


def _option(name: str) -> str:
    """Returns the option of a parameter, as typed."""
    return f"--{name.replace('_', '-')}"


@click.group(
    cls=Cli,
    late=COMMANDS,
    epilog=EPILOG,
    invoke_without_command=True,
    subcommand_metavar="COMMAND [ARGS]...",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(version(), message=f"%(prog)s, version %(version)s\ncatalogue {catalogue_hash()}")
@click.pass_context
def main(context: click.Context) -> None:
    """Simulate, measure and compare storage: drives, arrays, SSDs and cloud volumes.

    \b
    headstack run 990-pro-2tb --size 4KiB --depth 1,32       simulate a drive
    headstack measure /dev/nvme0n1 --size 4KiB --depth 1,32  measure the real one
    headstack choose -w file-server --rate 400 --limit p99=60ms --capacity 20TB --among nearline
    headstack judge iostat.log                               find slow disks
    headstack compare before.json after.json                 compare two fio runs
    headstack FILE                                           see which command takes a file
    headstack demo                                           see an answer first
    """
    if context.invoked_subcommand is None:
        print(start.text("start.txt"), end="")
