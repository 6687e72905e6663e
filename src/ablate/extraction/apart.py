"""Files read in a process of their own: one that never ends, or fills the memory, is told, and the rest are read.

Both sides are this program, and trust what the other says.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Timer

from ablate.errors import AblateError
from ablate.extraction import Extraction, Unreadable, extracted

MEMORY_BYTES = 4 * 2**30
"""What the process may take, where the system can hold it to that."""

COMMAND = ("-m", "ablate.extraction.apart")


@dataclass
class Reader:
    """Reads one file after another, each for at most `seconds`."""

    seconds: int
    running: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def __call__(self, data: bytes, ending: str, encoding: str) -> Extraction:
        """As `ablate.extraction.extracted`.

        Raises:
            Unreadable: it is, or takes more time or memory than there is.
            NotInstalled: its kind needs a package that is not there.

        """
        process = self.running[0] if self.running else self.start()
        late = Event()

        def end() -> None:
            late.set()
            process.kill()

        timer = Timer(self.seconds, end)
        timer.daemon = True
        timer.start()
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            pickle.dump((data, ending, encoding), process.stdin)
            process.stdin.flush()
            found = pickle.load(process.stdout)
        except (EOFError, OSError, pickle.UnpicklingError) as error:
            self.stop()
            raise Unreadable(
                f"found no end of it in {self.seconds} seconds, expected a file that can be read; give it more with "
                "--seconds, or split it"
                if late.is_set()
                else "found a file that ends the program which reads it, expected one that can be read; save it again"
            ) from error
        finally:
            timer.cancel()
        if isinstance(found, AblateError):
            raise found
        assert isinstance(found, Extraction)
        return found

    def start(self) -> subprocess.Popen[bytes]:
        source = str(Path(__file__).parents[2])
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, [source, os.environ.get("PYTHONPATH")])),
        }
        process = subprocess.Popen(
            [sys.executable, *COMMAND, str(self.seconds)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            start_new_session=True,  # Ctrl-C reaches this process alone, which ends the other
        )
        self.running.append(process)
        return process

    def stop(self) -> None:
        for process in self.running:
            process.kill()
            with suppress(OSError):  # what was not sent before its end
                process.communicate()
        self.running.clear()


@contextmanager
def reader(seconds: int) -> Iterator[Reader]:
    """A reader whose process ends with the block."""
    found = Reader(seconds)
    try:
        yield found
    finally:
        found.stop()


def answer(data: bytes, ending: str, encoding: str) -> Extraction | AblateError:
    try:
        return extracted(data, ending, encoding)
    except AblateError as error:
        return type(error)(str(error))
    except MemoryError:
        return Unreadable(
            f"found more than {MEMORY_BYTES:,} bytes of memory that it takes to read, expected fewer; split the file"
        )
    except Exception as error:  # of whatever kind a strange file makes a library meet
        return Unreadable(
            f"found something that the program cannot read ({type(error).__name__}: {error}), expected a file of its "
            "kind; save it again"
        )


def main(seconds: int) -> None:
    """Answer what comes in until nothing does; one answer takes no longer than twice its time if nobody stops it."""
    with suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    alarm: Callable[[int], object] = getattr(signal, "alarm", lambda _: None)  # Windows has none
    received, said = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr  # what a library prints is no answer
    try:
        while True:
            alarm(0)
            asked = pickle.load(received)
            alarm(2 * seconds)
            pickle.dump(answer(*asked), said)
            said.flush()
    except (EOFError, BrokenPipeError):
        os._exit(0)  # nobody listens any more, and closing the pipe would complain of it


if __name__ == "__main__":
    main(int(sys.argv[1]))
