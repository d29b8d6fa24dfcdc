"""Fetch bodies over HTTP: patiently, politely, and once where a cache is kept."""

import dataclasses
import hashlib
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urljoin, urlsplit

from mrgp._drafts import write_bytes
from mrgp.datasets.loaded import need

BACKOFF = 0.5
LONGEST_BACKOFF = 30.0
WEARY = 3
LONGEST_RETRY_AFTER = 120.0
CHUNK = 65536
BUSY = (408, 425, 429)
AGENT = "mrgp"
MOST_REDIRECTS = 5
LARGEST_BODY = 1 << 28

T = TypeVar("T")


class FetchError(OSError):
    """A body that could not be fetched, with the reason as its text."""


class Incomplete(ValueError):  # noqa: N818
    """A body that was cut short or garbled; asking for it again may help."""


class _Fault(Exception):  # noqa: N818
    """One failed request: why, whether to ask again, and after how long at the least."""

    def __init__(self, reason: str, again: bool = True, after: float = 0.0):
        super().__init__(reason)
        self.again, self.after = again, after


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
            write_bytes(file, body)
        return found

    def require(self, url: str, read: Callable[[bytes], T], what: str, check: str) -> T:
        """Return what `read` makes of a body that nothing can do without, or say what to check."""
        try:
            return self.get(url, read)
        except FetchError as error:
            raise FetchError(
                f"{self.where}: {what}{url} was not loaded: {error}. Check {check}, or try again"
                " later."
            ) from None

    def _patiently(self, url: str, read: Callable[[bytes], T]) -> tuple[bytes, T]:
        # Retries of urllib3 end at the headers; bodies that are cut short or garbled count too.
        retries = self.retries if self.failed < WEARY else 0
        for tried in range(retries + 1):
            try:
                body = self._once(url)
                found = _read(body, read)
                self.failed = 0
                return body, found
            except _Fault as fault:
                if fault.again and tried < retries:
                    wait(max(fault.after, min(BACKOFF * 2**tried, LONGEST_BACKOFF)))
                    continue
                # A refusal is an answer: the server is there.
                self.failed = self.failed + 1 if fault.again else 0
                often = f", {tried + 1} times" if fault.again and retries else ""
                raise FetchError(f"{fault}{often}") from None
        raise AssertionError("the last try returns or raises")

    def _once(self, url: str) -> bytes:
        """Send one request, and turn whatever goes wrong into a fault."""
        requests = need("requests", "Addresses")
        from urllib3.exceptions import HTTPError

        if self.requests and self.pause:
            wait(self.pause)
        self.requests += 1
        deadline, outside = time.monotonic() + self.timeout, sys.exc_info()[1]
        asked = {"headers": {"User-Agent": AGENT}, "timeout": self.timeout, "stream": True}
        asked["allow_redirects"] = False
        try:
            for _ in range(MOST_REDIRECTS + 1):
                with requests.get(url, **asked) as reply:
                    if reply.status_code >= 400:
                        raise _refusal(reply)
                    if not reply.is_redirect:
                        return _body(reply.raw, deadline)
                    url = _redirected(url, reply.headers["Location"])
            raise _Fault(f"more than {MOST_REDIRECTS} redirects", again=False)
        except (OSError, HTTPError) as error:
            raise _Fault(self._reason(error, outside)) from None

    def _reason(self, error: BaseException, outside: BaseException | None) -> str:
        """Return what was behind an error of the connection, which may have been met in another."""
        from urllib3.exceptions import IncompleteRead

        while (behind := error.__context__) is not None and behind is not outside:
            error = behind
        if isinstance(error, TimeoutError):
            return f"no complete reply within {self.timeout:g} s"
        if isinstance(error, IncompleteRead):
            promised = error.partial + error.expected
            return f"a reply of {error.partial} bytes where {promised} were promised"
        return f"the server was not reached: {error or type(error).__name__}"


def _redirected(url: str, location: str) -> str:
    """Return where a server sends to: to itself, and from https to nothing less."""
    there = urljoin(url, location)
    old, new = urlsplit(url), urlsplit(there)
    upgraded = (old.scheme, new.scheme) == ("http", "https") and not (old.port or new.port)
    same = (old.scheme, old.netloc) == (new.scheme, new.netloc)
    if not (same or (upgraded and old.hostname == new.hostname)):
        raise _Fault(
            f"the server sends to {new.scheme}://{new.netloc}, which is another place; if you trust"
            " it, give that address",
            again=False,
        )
    return there


def _refusal(reply: Any) -> _Fault:
    """Return what a status says, and a Retry-After header, given in seconds or as a date."""
    from urllib3.exceptions import InvalidHeader
    from urllib3.util import Retry

    reason = f"HTTP {reply.status_code} {reply.reason}".strip()
    if reply.status_code < 500 and reply.status_code not in BUSY:
        return _Fault(reason, again=False)
    try:
        after = float(Retry().parse_retry_after(reply.headers.get("Retry-After", "")))
    except InvalidHeader:
        after = 0.0
    if after > LONGEST_RETRY_AFTER:
        return _Fault(f"{reason}; the server asks to come back in {after:.0f} s", again=False)
    return _Fault(reason, after=after)


def _read(body: bytes, read: Callable[[bytes], T]) -> T:
    if not body.strip():
        raise _Fault("an empty reply")
    try:
        return read(body)
    except ValueError as error:
        raise _Fault(str(error), again=isinstance(error, Incomplete)) from None


def _body(raw: Any, deadline: float) -> bytes:
    """Read all of a reply before the deadline: a timeout alone bounds each wait, not their sum.

    What is unpacked on the way counts: a few bytes may stand for many.
    """
    body = bytearray()
    for part in iter(lambda: raw.read1(CHUNK, decode_content=True), b""):
        body += part
        if len(body) > LARGEST_BODY:
            raise _Fault(f"a reply of more than {LARGEST_BODY >> 20} MiB", again=False)
        if time.monotonic() > deadline:
            raise TimeoutError
    return bytes(body)


def _file_name(url: str) -> str:
    """Return a name that a person can read and that belongs to one URL alone."""
    words = re.sub(r"[^A-Za-z0-9=-]+", "_", url.split("://")[-1])[-100:].strip("_")
    return f"{words}-{hashlib.sha256(url.encode()).hexdigest()[:16]}"
