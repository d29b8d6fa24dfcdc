"""Legal limits of air pollutants and guideline values, by averaging time and unit."""

import re
from typing import NamedTuple

from mrgp.prediction.units import usual_units

HOUR, EIGHT, DAY, YEAR = "hour", "8 hours", "day", "year"
"""Over what a value is averaged."""


class Limit(NamedTuple):
    """A value that the mean over some time is not to exceed, and how often it may."""

    name: str
    value: float
    over: str
    allowed: str = ""


EU, EU_2030 = "EU 2008/50/EC", "EU 2024/2881, from 2030"
UK, WHO, US = "UK", "WHO 2021 guideline", "US NAAQS"
THREE_YEARS = "averaged over three years"
LIMITS = {
    "NO2": (
        Limit(EU, 200.0, HOUR, "18 hours a year may exceed it"),
        Limit(EU, 40.0, YEAR),
        Limit(EU_2030, 200.0, HOUR, "3 hours a year may exceed it"),
        Limit(EU_2030, 50.0, DAY, "18 days a year may exceed it"),
        Limit(EU_2030, 20.0, YEAR),
        Limit(UK, 200.0, HOUR, "18 hours a year may exceed it"),
        Limit(UK, 40.0, YEAR),
        Limit(WHO, 200.0, HOUR),
        Limit(WHO, 25.0, DAY, "3 to 4 days a year may exceed it"),
        Limit(WHO, 10.0, YEAR),
    ),
    "PM10": (
        Limit(EU, 50.0, DAY, "35 days a year may exceed it"),
        Limit(EU, 40.0, YEAR),
        Limit(EU_2030, 45.0, DAY, "18 days a year may exceed it"),
        Limit(EU_2030, 20.0, YEAR),
        Limit(UK, 50.0, DAY, "35 days a year may exceed it"),
        Limit(UK, 40.0, YEAR),
        Limit(WHO, 45.0, DAY, "3 to 4 days a year may exceed it"),
        Limit(WHO, 15.0, YEAR),
        Limit(US, 150.0, DAY, "1 day a year may exceed it"),
    ),
    "PM2.5": (
        Limit(EU, 25.0, YEAR),
        Limit(EU_2030, 25.0, DAY, "18 days a year may exceed it"),
        Limit(EU_2030, 10.0, YEAR),
        Limit(UK, 20.0, YEAR),
        Limit(WHO, 15.0, DAY, "3 to 4 days a year may exceed it"),
        Limit(WHO, 5.0, YEAR),
        Limit(US, 35.0, DAY, f"98th percentile of the days of a year, {THREE_YEARS}"),
        Limit(US, 9.0, YEAR, THREE_YEARS),
    ),
    "O3": (
        Limit("EU information threshold", 180.0, HOUR),
        Limit("EU alert threshold", 240.0, HOUR),
        Limit("EU target", 120.0, EIGHT, "of the highest mean of a day"),
        Limit("UK objective", 100.0, EIGHT, "of the highest mean of a day"),
        Limit(WHO, 100.0, EIGHT, "of the highest mean of a day"),
    ),
}
"""In micrograms a cubic metre."""
IN_PPB = {
    "NO2": (
        Limit(US, 100.0, HOUR, f"98th percentile of the highest hours of days, {THREE_YEARS}"),
        Limit(US, 53.0, YEAR),
    ),
    "O3": (Limit(US, 70.0, EIGHT, f"fourth highest mean of a day in a year, {THREE_YEARS}"),),
}
"""Limits that are set in ppb, and not said of masses: the law has no temperature for those."""
PATTERNS = {
    "NO2": r"no2|nitrogendioxide",
    "PM10": r"pm10",
    "PM2.5": r"pm25|pm2p5|pm2\.5",
    "O3": r"o3|ozone",
}
PPB = {"NO2": 1.9125, "O3": 1.9957}
"""Micrograms a cubic metre of one ppb, at 20 degrees and 1013 hPa, as EU law converts."""


def pollutant(task: str) -> str | None:
    """Return the pollutant that a task is, as it is usually written.

    >>> pollutant("no2"), pollutant("PM2_5"), pollutant("hourly pm10"), pollutant("noise")
    ('NO2', 'PM2.5', 'PM10', None)
    """
    plain = re.sub(r"[\s_\-]+", " ", task.lower()).replace("pm2 5", "pm25")
    for name, pattern in PATTERNS.items():
        if re.search(rf"(?<![a-z0-9]){pattern}(?![0-9])", plain.replace("nitrogen d", "nitrogend")):
            return name
    return None


def limits_for(task: str, units: str | None) -> tuple[Limit, ...]:
    """Return the limits of a task in its units; none where the pollutant or unit is not known.

    >>> limits_for("no2", "mg/m3")[0]
    Limit(name='EU 2008/50/EC', value=0.2, over='hour', allowed='18 hours a year may exceed it')
    >>> round(limits_for("ozone", "ppb")[2].value, 1), limits_for("no2", None)
    (60.1, ())
    """
    name, unit = pollutant(task), usual_units(units).lower()
    if name is None:
        return ()
    scale = {"ug/m3": 1.0, "mg/m3": 1e-3}
    if name in PPB:
        scale |= {"ppb": 1 / PPB[name], "ppbv": 1 / PPB[name], "ppm": 1e-3 / PPB[name]}
    if unit not in scale:
        return ()
    own = {"ppb": 1.0, "ppbv": 1.0, "ppm": 1e-3}.get(unit)
    found = [limit._replace(value=limit.value * scale[unit]) for limit in LIMITS[name]]
    if own is not None:
        found += [limit._replace(value=limit.value * own) for limit in IN_PPB[name]]
    return tuple(found)
