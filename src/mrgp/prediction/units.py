"""Units in which values below zero mean nothing: concentrations."""

import re

_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻µμ", "0123456789-uu")
_AMOUNT = (
    r"(?:(?:f|p|n|u|mc|m|c|k|micro|nano|milli)?(?:g|grams?|mol|moles?|bq)|#|1|molec|particles)"
)
_VOLUME = r"(?:m|dm|cm)\^?3|d?m?l|litres?|liters?"
_PER = re.compile(rf"{_AMOUNT}(?:/|per)(?:{_VOLUME}|kg|g)")
_INVERSE = re.compile(rf"(?:{_AMOUNT})?(?:(?:m|dm|cm)\^?-3|(?:d?m?l|kg|g)\^?-1)")
_SHARES = re.compile(r"pp(?:m|b|t|q)v?")


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
