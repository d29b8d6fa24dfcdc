"""The page of the command line says what there is."""

import re
import tomllib
from pathlib import Path

import pytest

from mrgp.config.checking import read_config
from mrgp.config.described import Described
from mrgp.config.schema import GRIDS, SHAPES, TABLES, Config, Source
from mrgp.io.exports import WRITERS

PAGE = (Path(__file__).parents[2] / "docs" / "cli.md").read_text()
KEYS = {
    key
    for row in re.findall(r"^\| (`.*?) \|", PAGE, re.MULTILINE)
    for key in re.findall(r"`(\w+)`", row)
}
OTHERS = {"sources"}
BLOCKS = re.findall(r"^```toml\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


def test_the_page_has_every_key_and_no_other():
    known = {*Config.model_fields, *Source.model_fields, *Described.model_fields}
    assert known - {*OTHERS} <= KEYS
    assert known >= KEYS


def test_the_page_has_every_suffix():
    for suffix in (*TABLES, *GRIDS, *SHAPES, *WRITERS):
        assert f"`{suffix}`" in PAGE


@pytest.mark.parametrize(
    "block", re.findall(r"^```toml\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
)
def test_the_configurations_of_the_page_are_right(block, tmp_path):
    text = block
    if "sources" not in tomllib.loads(block):
        text += '\n[sources.a]\nfile = "a.csv"\n'
    (tmp_path / "a.toml").write_text(text)
    assert read_config(tmp_path / "a.toml").sources
