"""The README's code runs as printed, and its commands are the Makefile's."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def test_the_first_code_block_runs(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    block = re.search(r"```python\n(.*?)```", README, re.DOTALL).group(1)
    namespace = {}
    exec(compile(block, "README.md", "exec"), namespace)
    assert namespace


def test_the_commands_exist():
    targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    commands = re.findall(r"(?:^|`)make (\w+)", README, re.MULTILINE)
    assert {"demo", "test"} <= set(commands) <= set(targets)
