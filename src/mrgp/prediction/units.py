"""Units of concentrations, in which values below zero mean nothing."""

import re

_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻µμ", "0123456789-uu")
_AMOUNT = (
    r"(?:(?:f|p|n|u|mc|m|c|k|micro|nano|milli)?(?:g|grams?|mol|moles?|bq)|#|1|molec|particles)"
)
_VOLUME = r"(?:m|dm|cm)\^?3|d?m?l|litres?|liters?"
_PER = re.compile(rf"{_AMOUNT}(?:/|per)(?:{_VOLUME}|kg|g)")
_INVERSE = re.compile(rf"(?:{_AMOUNT})?(?:(?:m|dm|cm)\^?-3|(?:d?m?l|kg|g)\^?-1)")
_SHARES = re.compile(r"pp(?:m|b|t|q)v?")
_MICROGRAMS = re.compile(
    r"^(?:u|µ|μ|micro)g(?:rams?)?\s*(?:/|\s|\*|·)?\s*m(?:\^|\*\*)?(?:-3|⁻³|3|³)$"
)
"""Micrograms a cubic metre, however they are written."""


def is_concentration(units: str | None) -> bool:
    """Tell whether units are those of a concentration, however they are written.

    >>> [is_concentration(u) for u in ("µg/m³", "ug m-3", "ppb", "degC", "m", None)]
    [True, True, True, False, False, False]
    """
    if units is None:
        return False
    text = units.translate(_SUPERSCRIPTS).lower()
    text = re.sub(r"[\s·.*_{}()$\\]|cubic", "", text.replace("**", "^"))
    return any(form.fullmatch(text) for form in (_PER, _INVERSE, _SHARES))


def usual_units(units: object) -> str:
    """Return units as a file has them, micrograms in the one spelling that all sources share.

    >>> usual_units("µg/m3"), usual_units("ug m**-3"), usual_units("kg m**-3"), usual_units(None)
    ('ug/m3', 'ug/m3', 'kg m**-3', '')
    """
    return _MICROGRAMS.sub("ug/m3", str(units or "").strip())
