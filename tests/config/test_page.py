"""The page of the command line says what there is."""

import dataclasses
import inspect
import re
import tomllib
from pathlib import Path
from typing import get_args

import pytest
import typer

import mrgp
from mrgp.cli import app
from mrgp.config.checking import read_config
from mrgp.config.described import (
    Described,
    KernelProduct,
    KernelSettings,
    KernelSum,
    make_kernel,
)
from mrgp.config.schema import GRIDS, SHAPES, TABLES, Config, Covariate, Source
from mrgp.inference.batches import DEFAULT_BATCH
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


def rows_after(opening):
    """Return the cells of the table that follows some words of the page, row by row."""
    rest = PAGE[PAGE.index(opening) :]
    table = re.search(r"^\|.*?(?=\n\n)", rest, re.DOTALL | re.MULTILINE)[0]
    return [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in table.split("\n")][
        2:
    ]


def named(cell):
    return re.findall(r"`(\w+)`", cell)


def test_the_page_has_every_setting_of_the_optimisers_and_their_defaults():
    rows = rows_after("The optimiser of a fit is")
    for kind in (mrgp.LBFGS, mrgp.Adam):
        own = {named(key)[0]: default for name, key, _, default in rows if kind.__name__ in name}
        fields = {field.name: field.default for field in dataclasses.fields(kind)}
        assert set(own) == set(fields)
        for name, default in fields.items():
            said = own[name]
            if isinstance(default, bool):
                assert said.startswith(f"`{str(default).lower()}`"), name
            elif default is None:
                assert said == str(DEFAULT_BATCH), name
            else:
                assert float(said) == default, name


BOUND = {"groups"}
"""Set when a kernel meets the names of its inputs: not for users."""
SET = {"metric": "full", "product": True, "dims": ["lon", "lat"], "components": 2, "order": 1}


KINDS = list(get_args(KernelSettings.model_fields["name"].annotation))


@pytest.mark.parametrize("name", KINDS)
def test_the_page_has_every_setting_of_a_kernel(name):
    of_all, rows = {"variance", "dims"}, rows_after("| kernel | settings |")
    (own,) = [named(cell) for names, cell in rows if name in named(names)]
    taken = inspect.signature(getattr(mrgp.kernels, name)).parameters
    assert {*taken} - BOUND == {*own, *of_all}
    explained = {key for names, _ in rows_after("| setting | meaning |") for key in named(names)}
    assert {*own, *of_all} <= explained


@pytest.mark.parametrize(
    "name", ["RBF", "Matern32", "RationalQuadratic", "Polynomial", "ArcCosine"]
)
def test_settings_of_a_kernel_are_read_from_a_file(name):
    kind = getattr(mrgp.kernels, name)
    keys = [key for key in inspect.signature(kind).parameters if key not in BOUND | {"stretch"}]
    given = {key: SET.get(key, 2) for key in keys}
    if given.get("product"):
        given.pop("metric")
    made = make_kernel(KernelSettings(name=name, **given))
    for key, value in given.items():
        expected = tuple(value) if isinstance(value, list) else value
        assert getattr(made, key) == expected, key


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
