"""Longitudes and latitudes as local kilometres, and geometries of any CRS.

Whatever CRS data come in, they are brought to longitude and latitude (WGS84) and then measured in
kilometres along each axis from the middle of their bounds, with the radii of curvature of the
ellipsoid there. Boxes in degrees stay boxes, and two sources with different centres differ by an
affine map. A distance along a parallel d degrees away from the centre's latitude is off by about
1.7 % x d x tan(latitude); across a city (d = 0.25, latitude 51.5) that is 0.5 %. It is the
equidistant cylindrical projection whose standard parallel is that latitude, and wide areas are told
so, with how far off distances are at their edges.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mrgp._extras import needed
from mrgp.config.names import LAT, LON, PLANE
from mrgp.data.harmony import LOCAL, MOST_OFF, NEAREST_POLE, WIDEST, share_off
from mrgp.io.quantities import measure, restore
from mrgp.supports import Axis, Side, same_turn

EQUATORIAL_KM = 6378.137
FLATTENING = 1 / 298.257223563
DEGREES = ("EPSG:4326", "OGC:CRS84", "WGS84", "WGS 84", 4326)


def kilometres_per_degree(latitude: float) -> tuple[float, float]:
    """Return the lengths of a degree of longitude and of latitude on the ellipsoid, in km.

    >>> [round(length, 3) for length in kilometres_per_degree(51.5)]
    [69.441, 111.258]
    """
    eccentricity = FLATTENING * (2 - FLATTENING)
    bulge = 1 - eccentricity * np.sin(np.radians(latitude)) ** 2
    across = EQUATORIAL_KM / np.sqrt(bulge)
    along = EQUATORIAL_KM * (1 - eccentricity) / bulge**1.5
    lengths = np.radians([across * np.cos(np.radians(latitude)), along])
    return float(lengths[0]), float(lengths[1])


def local_axes(lon: Any, lat: Any, where: str) -> tuple[Axis, Axis]:
    """Return axes of kilometres about the middle of longitudes and latitudes.

    Longitudes may be counted from -180 or from 0; `same_turn` brings them together.
    """
    lon, lat = np.ravel(lon), np.ravel(lat)
    if np.any(np.abs(lat) > 90) or np.any(np.abs(lon) > 360):
        raise ValueError(
            f"{where}: longitudes {lon.min():.6g} to {lon.max():.6g} and latitudes {lat.min():.6g}"
            f" to {lat.max():.6g} are not on Earth. Look for swapped columns or fill values, or"
            " give the CRS that the coordinates are in."
        )
    near = same_turn(lon, float(lon[0]))
    middle = 0.5 * (near.min() + near.max())
    middle -= 360.0 * np.floor((middle + 180.0) / 360.0)
    centre = 0.5 * (lat.min() + lat.max())
    width, height = np.ptp(near), np.ptp(lat)
    bent = abs(centre) > NEAREST_POLE or share_off([lat.min(), lat.max()], centre) > MOST_OFF
    if width > WIDEST or bent:
        raise ValueError(
            f"{where}: the data span {width:.3g} degrees of longitude and {height:.3g} of latitude"
            f" about latitude {centre:.3g}. {LOCAL}."
        )
    across, along = kilometres_per_degree(centre)
    return (
        Axis("longitude", float(middle), 1 / across, "km"),
        Axis("latitude", float(centre), 1 / along, "km"),
    )


def localise(lon: Side, lat: Side, where: str) -> list[Side]:
    """Write sides in degrees in local kilometres."""
    ends = np.concatenate([lon.lower, lon.upper]), np.concatenate([lat.lower, lat.upper])
    east, north = local_axes(*ends, where)
    return [
        Side(side.name, measure(side.lower, axis), measure(side.upper, axis), axis)
        for side, axis in ((lon, east), (lat, north))
    ]


def is_degrees(crs: Any) -> bool:
    """Whether a CRS is longitude and latitude on WGS84."""
    return (crs.upper() if isinstance(crs, str) else crs) in DEGREES or _crs(crs).to_epsg() == 4326


def find_pair(names: Sequence[str], crs: Any, where: str) -> tuple[int, int]:
    """Return which inputs are the longitude and the latitude, or x and y of a projected CRS."""
    wanted = (LON, LAT) if is_degrees(crs) or _crs(crs).is_geographic else PLANE
    lowered = [name.lower() for name in names]
    found = [[i for i, name in enumerate(lowered) if name in words] for words in wanted]
    if any(len(matches) != 1 for matches in found):
        raise ValueError(
            f"{where}: crs= needs one input named as one of {wanted[0]} and one of {wanted[1]}; the"
            f" inputs are {tuple(names)}. Rename the columns."
        )
    return found[0][0], found[1][0]


def locate(x: Side, y: Side, crs: Any, where: str) -> list[Side]:
    """Bring sides of any CRS to local kilometres; boxes must be in degrees already."""
    if is_degrees(crs):
        return localise(x, y, where)
    if not (x.flat and y.flat):
        raise ValueError(
            f"{where}: boxes of the CRS {crs!r} are not boxes in degrees. Make them polygons"
            " (shapely.box) and give these as geometry=, or leave crs= out for all sources."
        )
    places = need("geopandas").GeoSeries.from_xy(x.lower, y.lower, crs=_crs(crs))
    return point_sides(places, where)


def read_geometry(column: Any, crs: Any, where: str) -> Any:
    """Return a geometry column as a GeoSeries of points or of polygons, with its CRS."""
    label = f"{where}: column {column.name!r}"
    try:
        series = need("geopandas").GeoSeries(column)
    except TypeError:
        raise TypeError(
            f"{label} must hold geometries; got {column.dtype}. Make them with"
            " geopandas.points_from_xy or shapely."
        ) from None
    gaps = (series.isna() | series.is_empty).to_numpy()
    if gaps.any():
        raise ValueError(
            f"{label} is missing or empty in {gaps.sum()} of {len(gaps)} rows, first in row"
            f" {np.argmax(gaps)}. Drop those rows."
        )
    kinds = set(series.geom_type)
    if kinds != {"Point"} and not kinds <= {"Polygon", "MultiPolygon"}:
        counts = ", ".join(f"{n} {kind}" for kind, n in series.geom_type.value_counts().items())
        raise ValueError(
            f"{label} must hold points alone or polygons alone; got {counts}. Read them one by one,"
            " as sources of their own."
        )
    if crs is False:
        return series.set_crs(None, allow_override=True)
    if crs is not None and series.crs is not None and series.crs != _crs(crs):
        raise ValueError(
            f"{label} has the CRS {series.crs.to_string()}, but crs={crs!r} is given. Leave crs="
            " out, or convert the frame with to_crs."
        )
    return series if crs is None else series.set_crs(_crs(crs))


def place(geometry: Any, where: str) -> tuple[Any, tuple[Axis, Axis] | None]:
    """Return geometries in local kilometres and their axes, or as they are without a CRS."""
    import shapely

    if geometry.crs is None:
        return geometry.to_numpy(), None
    shapes = geometry.to_crs("EPSG:4326").to_numpy()
    corners = shapely.bounds(shapes)
    axes = local_axes(corners[:, [0, 2]], corners[:, [1, 3]], where)
    return _each(shapes, measure, axes), axes


def point_sides(geometry: Any, where: str) -> list[Side]:
    """Return a GeoSeries of points as two inputs."""
    import shapely

    shapes, axes = place(geometry, where)
    x, y = shapely.get_coordinates(shapes).T
    if axes is None:
        return [Side("x", x, x), Side("y", y, y)]
    return [Side("lon", x, x, axes[0]), Side("lat", y, y, axes[1])]


def outlines(shapes: Any, axes: Sequence[Axis | None]) -> Any:
    """Return the outlines of regions as a GeoSeries, in degrees where the axes are known."""
    geopandas = need("geopandas")
    if None in axes:
        return geopandas.GeoSeries(shapes)
    return geopandas.GeoSeries(_each(shapes, restore, axes), crs="EPSG:4326")


def _each(shapes: Any, change: Callable[..., Any], axes: Sequence[Axis | None]) -> Any:
    """Change the two coordinates of geometries, each by its axis."""
    import shapely

    def changed(xy: Any) -> Any:
        return np.column_stack([change(v, axis) for v, axis in zip(xy.T, axes, strict=True)])

    return shapely.transform(shapes, changed)


def need(package: str) -> Any:
    """Import a package of the extra `geo`, or say where it comes from."""
    return needed(package, f'This needs {package}, which comes with pip install "mrgp[geo]".')


def _crs(crs: Any) -> Any:
    pyproj = need("pyproj")
    try:
        return pyproj.CRS.from_user_input(crs)
    except pyproj.exceptions.CRSError:
        raise ValueError(f'crs= takes a CRS such as "EPSG:4326"; got {crs!r}.') from None
