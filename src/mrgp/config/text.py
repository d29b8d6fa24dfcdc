"""The text of a configuration, as TOML: bounded before it is parsed."""

import re
import tomllib
from pathlib import Path
from typing import Any

MOST_BYTES = 1 << 20
MOST_DOTS = 30
"""How many dots a key may have: the parser takes the square of them, and none needs so many."""

_NAME = r"""(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')"""
DOTTED = re.compile(rf"(?:\.[ \t]*+{_NAME}[ \t]*+){{{MOST_DOTS + 1}}}")
"""It gives nothing back that it took, so that no text keeps it for long."""


def read_toml(path: Path) -> tuple[str, dict[str, Any]]:
    """Return the text of a file and what it says as TOML, or say in a sentence why it cannot be.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "a.toml"
    ...     _ = file.write_text('a.b = 1')
    ...     read_toml(file)
    ('a.b = 1', {'a': {'b': 1}})
    """
    with path.open("rb") as file:
        content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise ValueError(
            f"{path} is not a configuration: it has over {MOST_BYTES:,} bytes. Values belong into"
            " files that it names."
        )
    try:
        text = re.sub("\r\n?", "\n", content.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise ValueError(f"{path} is no text in UTF-8, as a configuration is.") from None
    if found := DOTTED.search(text):
        line = text.count("\n", 0, found.start()) + 1
        raise ValueError(
            f"{path}, line {line}: a key has over {MOST_DOTS} dots. Keys are names, such as"
            " sources.NAME.file."
        )
    try:
        return text, tomllib.loads(text)
    except RecursionError:
        raise ValueError(f"{path} is not a configuration: it is nested too deep.") from None
    except tomllib.TOMLDecodeError as error:
        raise ValueError(
            f"{path} is not valid TOML: {error}. Text stands in quotes, tables as [name]."
        ) from None
    except ValueError:
        # Python converts no whole number of very many digits.
        raise ValueError(
            f"{path} is not a configuration: it has a number of thousands of digits. Write large"
            " numbers as 1e30."
        ) from None
