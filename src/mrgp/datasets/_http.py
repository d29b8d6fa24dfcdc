"""Fetch bodies over HTTP: patiently, politely, and once where a cache is kept."""

import dataclasses
import email.utils
import hashlib
import http.client
import os
import re
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

BACKOFF = 0.5
LONGEST_BACKOFF = 30.0
WEARY = 3
LONGEST_RETRY_AFTER = 120.0
CHUNK = 65536
BUSY = (408, 425, 429)
AGENT = "mrgp"

T = TypeVar("T")


class FetchError(OSError):
    """A body that could not be fetched, with the reason as its text."""


class Incomplete(ValueError):  # noqa: N818
    """A body that was cut short or garbled; asking for it again may help."""


class _Fault(Exception):  # noqa: N818
    """One failed request: why, whether to ask again, and after how long at the least."""

    def __init__(self, reason: str, again: bool = True, after: float = 0.0):
        super().__init__(reason)
        self.reason, self.again, self.after = reason, again, after


def wait(seconds: float) -> None:
    """Sleep; tests put another function here."""
    time.sleep(seconds)


@dataclasses.dataclass
class Fetcher:
    """Ask one server: `pause` seconds between requests, `timeout` for each, `retries` more tries.

    Between tries the pause doubles, from half a second up to 30, or is what the server's
    Retry-After asks for. After three addresses in a row that failed to the last try, others are
    tried once each until one answers: a server that is down is not worn out. Bodies that `read`
    accepts are kept in the folder `cache`, if there is one.
    """

    timeout: float = 30.0
    retries: int = 4
    pause: float = 0.2
    cache: Path | None = None
    where: str = "fetch"
    requests: int = dataclasses.field(default=0, init=False)
    failed: int = dataclasses.field(default=0, init=False)

    def __post_init__(self):
        if not self.timeout > 0 or self.retries < 0 or not self.pause >= 0:
            raise ValueError(
                f"{self.where}: timeout= must be positive, retries= and pause= not negative; got"
                f" {self.timeout}, {self.retries} and {self.pause}."
            )
        if self.cache is None:
            return
        if self.cache.exists() and not self.cache.is_dir():
            raise ValueError(f"{self.where}: cache={self.cache} is a file; give a folder.")
        self.cache.mkdir(parents=True, exist_ok=True)

    def get(self, url: str, read: Callable[[bytes], T], keep: bool = True) -> T:
        """Return what `read` makes of the body at a URL, and keep the body in the cache.

        `read` raises Incomplete for a body worth asking for again, and ValueError for one that is
        not.
        """
        file = None if self.cache is None else self.cache / _file_name(url)
        if file is not None and file.is_file():
            # A file that does not read well was damaged, and is fetched again.
            try:
                return read(file.read_bytes())
            except ValueError:
                pass
        body, found = self._patiently(url, read)
        if file is not None and keep:
            _write(file, body)
        return found

    def _patiently(self, url: str, read: Callable[[bytes], T]) -> tuple[bytes, T]:
        retries = self.retries if self.failed < WEARY else 0
        for tried in range(retries + 1):
            try:
                body = self._once(url)
                found = _read(body, read)
                self.failed = 0
                return body, found
            except _Fault as fault:
                reason = _why_stop(fault, tried, retries)
                if reason is not None:
                    # A refusal is an answer: the server is there.
                    self.failed = self.failed + 1 if fault.again else 0
                    raise FetchError(reason) from None
                wait(max(fault.after, min(BACKOFF * 2**tried, LONGEST_BACKOFF)))
        raise AssertionError("the last try returns or raises")

    def _once(self, url: str) -> bytes:
        """Send one request, and turn whatever goes wrong into a fault."""
        if self.requests and self.pause:
            wait(self.pause)
        self.requests += 1
        request = urllib.request.Request(url, headers={"User-Agent": AGENT})
        deadline = time.monotonic() + self.timeout
        late = f"no complete reply within {self.timeout:g} s"
        try:
            with urllib.request.urlopen(request, timeout=self.timeout) as reply:
                return _body(reply, deadline)
        except urllib.error.HTTPError as error:
            with error:
                again = error.code >= 500 or error.code in BUSY
                reason = f"HTTP {error.code} {error.reason}".strip()
                raise _Fault(reason, again, _retry_after(error.headers)) from None
        except TimeoutError:
            raise _Fault(late) from None
        except urllib.error.URLError as error:
            if isinstance(error.reason, TimeoutError):
                raise _Fault(late) from None
            raise _Fault(f"the server was not reached: {error.reason}") from None
        except (http.client.HTTPException, OSError) as error:
            what = str(error) or type(error).__name__
            raise _Fault(f"the connection broke: {what}") from None


def _why_stop(fault: _Fault, tried: int, retries: int) -> str | None:
    """Return why there is no other try after a fault, or None."""
    if not fault.again:
        return fault.reason
    if fault.after > LONGEST_RETRY_AFTER:
        return f"{fault.reason}; the server asks to come back in {fault.after:.0f} s"
    if tried < retries:
        return None
    return fault.reason if retries == 0 else f"{fault.reason}, {tried + 1} times"


def _read(body: bytes, read: Callable[[bytes], T]) -> T:
    if not body.strip():
        raise _Fault("an empty reply")
    try:
        return read(body)
    except Incomplete as error:
        raise _Fault(str(error)) from None
    except ValueError as error:
        raise _Fault(str(error), again=False) from None


def _body(reply: Any, deadline: float) -> bytes:
    """Read all of a reply before the deadline: a timeout alone bounds each wait, not their sum."""
    promised = reply.headers.get("Content-Length")
    size = int(promised) if promised and promised.isdigit() else None
    parts, got = [], 0
    while size is None or got < size:
        part = reply.read1(CHUNK)
        if not part:
            break
        parts.append(part)
        got += len(part)
        if time.monotonic() > deadline:
            raise TimeoutError
    if size is not None and got != size:
        raise _Fault(f"a reply of {got} bytes where {size} were promised")
    return b"".join(parts)


def _retry_after(headers: Any) -> float:
    """Return the seconds that a Retry-After header asks for, given as a number or as a date."""
    text = (headers.get("Retry-After") or "").strip()
    if text.isdigit():
        return float(text)
    try:
        then = email.utils.parsedate_to_datetime(text)
    except ValueError:
        return 0.0
    return max(0.0, then.timestamp() - time.time())


def _file_name(url: str) -> str:
    """Return a name that a person can read and that belongs to one URL alone."""
    words = re.sub(r"[^A-Za-z0-9=-]+", "_", url.split("://")[-1])[-100:].strip("_")
    return f"{words}-{hashlib.sha256(url.encode()).hexdigest()[:16]}"


def _write(file: Path, body: bytes) -> None:
    """Write a file whole or not at all."""
    handle, name = tempfile.mkstemp(dir=file.parent, prefix=".part-")
    try:
        with os.fdopen(handle, "wb") as part:
            part.write(body)
        os.replace(name, file)
    except BaseException:
        os.unlink(name)
        raise
