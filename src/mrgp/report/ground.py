"""Where on Earth a map in plain numbers lies: the CRS of its x and y, where one is given."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from mrgp._extras import needed
from mrgp.config.names import PLANE
from mrgp.report.layout import Layout

EDGE = 33
"""Places along each side of a map, whose extent in degrees they have."""

Values = Float[np.ndarray, " n"]
IN_KM = " in km"
NEEDED = 'write_report: crs= needs pyproj, which comes with pip install "mrgp[geo]".'
NOT_KNOWN = (
    "There is no coast on this map: {x} and {y} are plain numbers, and where on Earth they are is"
    " not known. crs= (--crs on the command line) says it, such as EPSG:5070 or EPSG:5070 in km."
)


@dataclasses.dataclass(frozen=True)
class Ground:
    """The CRS of the two inputs of a map, and how many of its units one of theirs is.

    >>> Ground("EPSG:27700", 1.0, 1.0).text
    'EPSG:27700'
    """

    text: str
    scale: float
    km: float
    forth: Any = None
    back: Any = None

    @property
    def unit(self) -> str | None:
        """The unit of the two inputs.

        >>> Ground("EPSG:27700", 1.0, 0.001).unit, Ground("EPSG:27700 in km", 1000.0, 1.0).unit
        ('m', 'km')
        """
        return {1.0: "km", 0.001: "m"}.get(round(self.km, 9))

    @classmethod
    def of(cls, crs: Any, layout: Layout) -> "Ground | None":
        """Read a CRS, or say why this map has no use of one."""
        if crs is None:
            return None
        if len(layout.across) != 2 or any(layout.axes[d] is not None for d in layout.across):
            names = tuple(layout.names[d] for d in layout.across)
            raise ValueError(
                f"write_report: crs= says where a map in plain numbers lies; {names} of this page"
                " need none. Leave crs= out."
            )
        pyproj = needed("pyproj", NEEDED)
        text = str(crs)
        name = text.removesuffix(IN_KM)
        try:
            known = pyproj.CRS.from_user_input(name if isinstance(crs, str) else crs)
        except pyproj.exceptions.CRSError:
            raise ValueError(
                'write_report: crs= takes a CRS such as "EPSG:27700", or "EPSG:5070 in km" for'
                f" numbers in kilometres; got {crs!r}."
            ) from None
        if not known.is_projected:
            raise ValueError(
                f"write_report: crs= takes a projected CRS; {text} is in degrees. Read longitudes"
                ' and latitudes with crs="EPSG:4326", and fit again.'
            )
        metres = float(known.axis_info[0].unit_conversion_factor)
        scale = 1000.0 / metres if text.endswith(IN_KM) else 1.0
        pairs = ((known, "EPSG:4326"), ("EPSG:4326", known))
        to, back = (pyproj.Transformer.from_crs(*pair, always_xy=True) for pair in pairs)
        return cls(text, scale, scale * metres / 1000.0, to, back)

    def degrees(self, x: Values, y: Values) -> tuple[Values, Values]:
        """Return the longitudes and latitudes of places of the map."""
        return self.forth.transform(self.scale * x, self.scale * y)

    def box(self, x: Sequence[float], y: Sequence[float]) -> tuple[float, float, float, float]:
        """Return west, east, south and north of what lies between two ends along each side."""
        across, along = np.meshgrid(np.linspace(x[0], x[1], EDGE), np.linspace(y[0], y[1], EDGE))
        lon, lat = self.degrees(across.ravel(), along.ravel())
        return float(lon.min()), float(lon.max()), float(lat.min()), float(lat.max())

    def plane(self, lon: Values, lat: Values) -> tuple[Values, Values]:
        """Return where longitudes and latitudes are on the map."""
        x, y = self.back.transform(lon, lat)
        return np.asarray(x) / self.scale, np.asarray(y) / self.scale


def unknown(layout: Layout, ground: Ground | None) -> str:
    """Say why a map of x and y has no coast, or nothing."""
    if ground is not None or len(layout.across) != 2:
        return ""
    names = [layout.names[d] for d in layout.across]
    plain = all(layout.axes[d] is None for d in layout.across)
    if not plain or not all(n.lower() in words for n, words in zip(names, PLANE, strict=True)):
        return ""
    return NOT_KNOWN.format(x=names[0], y=names[1])
