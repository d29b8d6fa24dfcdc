"""What a reader does with a page: choose, click, save, and what is then drawn."""


def choose(shown, name, **which):
    shown.page.select_option(f"#{name}", **which)
    shown.settle()


def traces(shown, chart):
    found = shown.page.evaluate(
        "(id) => byId(id).data.map((t) => ({name: t.name, x: t.x && Array.from(t.x),"
        " y: t.y && Array.from(t.y), z: 0, colour: t.marker && t.marker.color}))",
        chart,
    )
    return {trace["name"]: trace for trace in found if trace.get("name")}


def click(shown, lon, lat):
    """Click a place of the map, as a reader does: point at it, then press."""
    page = shown.page
    page.locator("#view").scroll_into_view_if_needed()
    x, y = page.evaluate(
        "([lon, lat]) => { const { xaxis, yaxis } = byId('view')._fullLayout; const box ="
        " byId('view').getBoundingClientRect(); return [box.left + xaxis._offset + xaxis.l2p(lon),"
        " box.top + yaxis._offset + yaxis.l2p(lat)]; }",
        [lon, lat],
    )
    page.mouse.move(x - 8, y - 8)
    page.mouse.move(x, y, steps=3)
    # Plotly takes a click to be at what it last found below the pointer.
    page.wait_for_function(
        "([lon, lat]) => (byId('view')._hoverdata || []).some((point) =>"
        " Math.abs(point.x - lon) < 0.04 && Math.abs(point.y - lat) < 0.04)",
        arg=[lon, lat],
    )
    # Sooner after another click it would be half of a double click.
    page.wait_for_timeout(350)
    page.mouse.click(x, y)
    shown.settle()


def saved(shown, button):
    with shown.page.expect_download() as waiting:
        shown.page.click(f"#{button}")
    return waiting.value
