"""The page of the command line says what there is."""

import re
import tomllib
from pathlib import Path

import pytest
import typer

from mrgp.cli import app
from mrgp.config.checking import read_config
from mrgp.config.described import Described, KernelProduct, KernelSettings, KernelSum
from mrgp.config.schema import GRIDS, SHAPES, TABLES, Config, Covariate, Source
from mrgp.io.exports import WRITERS

PAGE = (Path(__file__).parents[2] / "docs" / "cli.md").read_text()
OTHERS = {"sources"}
BLOCKS = re.findall(r"^```toml\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


def keys_of(opening):
    """Return the keys of the table that follows some words of the page."""
    rest = PAGE[PAGE.index(opening) :]
    table = re.search(r"^\| key \|.*?(?=\n\n)", rest, re.DOTALL | re.MULTILINE)
    rows = re.findall(r"^\| (`.*?) \|", table[0], re.MULTILINE)
    return {key for row in rows for key in re.findall(r"`(\w+)`", row)}


def test_the_page_has_every_key_and_no_other():
    assert keys_of("Before the tables:") == {*Config.model_fields} - {*OTHERS, "covariates"}
    assert keys_of("Each source is a table") == {*Source.model_fields}
    assert keys_of("a table `[covariates.NAME]`") == {*Covariate.model_fields}
    assert keys_of("The table `[model]` has") == {*Described.model_fields}


def words_of(schema):
    """Return all words that a schema allows, and all forms with a key of their own."""
    if isinstance(schema, list):
        return {word for part in schema for word in words_of(part)}
    if not isinstance(schema, dict):
        return set()
    found = {word for word in schema.get("enum", ()) if isinstance(word, str)}
    found |= {schema["const"]} if isinstance(schema.get("const"), str) else set()
    parts = (part for key, part in schema.items() if key not in ("description", "default"))
    return found | {word for part in parts for word in words_of(part)}


def test_the_page_has_every_word_of_the_schema():
    """Names of kernels, recipes, optimisers, likelihoods and settings are all in the reference."""
    lost = {
        word
        for word in words_of(Config.model_json_schema())
        if not re.search(rf"\b{re.escape(word)}\b", PAGE)
    }
    assert not lost
    for form in (KernelSettings, KernelProduct, KernelSum):
        for key in form.model_fields:
            assert f"{{ {key} = " in PAGE


def test_the_page_has_every_option_of_predict_and_init():
    commands = typer.main.get_command(app).commands
    for name in ("init", "fit", "predict", "evaluate", "report", "info"):
        for option in (o for p in commands[name].params for o in p.opts if o.startswith("--")):
            assert option in PAGE, f"mrgp {name} {option}"


def test_the_page_has_every_suffix():
    for suffix in (*TABLES, *GRIDS, *SHAPES, *WRITERS):
        assert f"`{suffix}`" in PAGE


@pytest.mark.parametrize("block", BLOCKS)
def test_the_configurations_of_the_page_are_right(block, tmp_path):
    text = block
    if "sources" not in tomllib.loads(block):
        text += '\n[sources.a]\nfile = "a.csv"\n'
    (tmp_path / "a.toml").write_text(text)
    assert read_config(tmp_path / "a.toml").sources
