"""A page with every chart and every custom element, and a server for it with the security policy of the pages."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

from markupsafe import Markup

from calve import web
from calve.capture.inspection import LEGEND
from calve.web.charts import Series, Span, lag_against_expiry, lateness, run_spans, sparkline
from calve.web.graph import Edge
from calve.web.graph_svg import NodeText, arrange, graph_svg
from calve.web.legend import change_legend, legend_json, legend_list, status_legend

STATIC = Path(str(web.__file__)).parent / "static"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
HOSTILE = "<img src=x onerror=alert(1)>"
_TYPES = {".css": "text/css", ".js": "text/javascript", ".json": "application/json", ".svg": "image/svg+xml"}
_STATUSES = {"D": "SUCCEEDED", "E": "FAILED", "B": "IN_PROGRESS", "A": "CREATED"}

_TEXTS = [
    NodeText("capture", detail="61 files · 28 ms", status="SUCCEEDED", href="?step=capture"),
    NodeText("clean", detail="2.06 M rows · 19 s", status="SUCCEEDED", href="?step=clean"),
    NodeText("audit rows", detail="3 checks", status="SUCCEEDED", href="?step=audit"),
    NodeText("merge", detail="failed after 4.1 s", status="USER_FAILED", href="?step=merge", is_selected=True),
    NodeText("by country", detail="12 of 31 iterations", status="RUNNING", href="?step=loop", members=31),
    NodeText(HOSTILE, detail="waits for merge", status="CREATED", href="?step=hostile"),
    NodeText("notify", detail="paused", status="PAUSED", href="?step=notify"),
    NodeText("archive", detail="not this time", status="SKIPPED", href="?step=archive"),
]
_EDGES = [
    Edge("capture", "clean"),
    Edge("clean", "audit rows"),
    Edge("clean", "merge"),
    Edge("clean", "by country"),
    Edge("audit rows", HOSTILE),
    Edge("merge", HOSTILE, "rows > 0"),
    Edge("by country", HOSTILE),
    Edge(HOSTILE, "notify"),
    Edge("capture", "archive"),
    Edge("archive", "notify", "day == 'monday'"),
]
LOG = "".join(f"2026-03-26 06:{n // 60 % 60:02d}:{n % 60:02d} line {n} of the log\n" for n in range(4_000)).replace(
    "line 3990 of", "\x1b[31;1mline 3990\x1b[0m of"
)


def heat_map() -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Return rows and columns of a table with late data, compactions and a checkpoint before column 52."""
    columns = [(f"s{n}", f"commit {n}") for n in range(64)]
    rows = []
    for day in range(25, -1, -1):
        letters = ""
        for commit in range(64):
            distance = commit * 26 / 64 - day
            is_done = commit < 52
            if commit in {21, 47} and distance > 2 and (day * 7) % 5:
                letters += "r"
            elif -0.6 <= distance < 1.2:
                letters += "c" if is_done else "p"
            elif 1.2 <= distance < 6 and (commit * 13 + day * 7) % 11 == 0:
                letters += "L" if is_done else "l"
            else:
                letters += "x" if (commit, day) == (40, 3) else "."
        rows.append((f"2026-03-{day + 1:02d}", letters))
    return rows, columns


def page() -> Markup:
    """Return the whole page."""
    rows, columns = heat_map()
    statuses = status_legend(_STATUSES)
    letters = "".join("DDDDDDDDEDDDDDDBDDDA"[n * 7919 % 4099 % 20] for n in range(40_000))
    return Markup(
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Pictures</title>'
        '<link rel="icon" href="/static/icon.svg">'
        '<meta name="viewport" content="width=device-width">{styles}{scripts}</head><body>'
        '<header class="top"><b>calve</b><command-palette><form action="/workflows"><input name="search" type="search"'
        ' aria-label="Search" placeholder="Search or jump to…"></form></command-palette></header><main>'
        '<h1>Pictures</h1><section class="panel"><h2>Graph</h2><flow-graph id="graph">{graph}</flow-graph></section>'
        '<section class="panel"><h2>What changed {legend}</h2><grid-map id="changes" data-legend="{legend_data}"'
        ' data-columns="{columns}" data-href="?commit={{column}}&partition={{row}}" data-checkpoint="52">'
        "<p>Commits and partitions of playback_table</p><pre>{rows}</pre></grid-map></section>"
        '<section class="panel"><h2>Iterations {legend_statuses}</h2><grid-map id="iterations" data-legend="{statuses}"'
        ' data-href="?iteration={{number}}"><p>40,000 iterations</p><pre>{letters}</pre></grid-map></section>'
        '<section class="panel"><h2>Log</h2><log-tail id="log" src="/logs?attempt=1" live>'
        '<p><a href="/logs">The whole log</a></p></log-tail></section>'
        '<section class="panel"><h2>Chart</h2><metric-chart id="chart" time><table><caption>Lag</caption>'
        '<thead><tr><th>time</th><th data-tone="late">orders</th><th>members</th></tr></thead><tbody>{points}</tbody>'
        '</table></metric-chart></section><section class="panel"><h2>Times</h2><p><since-time><time id="past"'
        ' datetime="2020-01-01T00:00:00Z">2020</time></since-time> <since-time clock><time id="clock"'
        ' datetime="2020-01-01T00:00:00Z">2020-01-01 00:00 UTC</time></since-time></p><table data-list><tbody>'
        '<tr><td><a href="?row=1">first</a></td></tr><tr><td><a href="?row=2">second</a></td></tr></tbody></table>'
        '</section><section class="panel"><h2>Charts {sparkline}</h2>{spans}<div class="two"><div>{lateness}</div>'
        "<div>{lag}</div></div></section></main></body></html>"
    ).format(
        styles=_styles(),
        **_charts(),
        scripts=_scripts(),
        graph=graph_svg(_TEXTS, arrange(_TEXTS, _EDGES)),
        legend=legend_list(change_legend(LEGEND)),
        legend_data=legend_json(change_legend(LEGEND)),
        columns=json.dumps(columns),
        rows="\n".join("\t".join(row) for row in rows),
        legend_statuses=legend_list(statuses),
        statuses=legend_json(statuses),
        letters=letters,
        points=Markup("").join(
            Markup('<tr><td data-value="{}">{}</td><td>{}</td><td>{}</td></tr>').format(
                1_774_500_000 + n * 3_600, n, n % 7, n % 5 + 3
            )
            for n in range(48)
        ),
    )


def _charts() -> dict[str, Markup]:
    spans = [
        Span("capture", "SUCCEEDED", 0, 28, "?step=capture"),
        Span("clean", "SUCCEEDED", 28, 19_000, "?step=clean"),
        Span("merge", "USER_FAILED", 19_000, 23_100, "?step=merge"),
        Span("by country", "RUNNING", 19_000, None, "?step=loop"),
        Span(HOSTILE, "CREATED", 36_000, 36_000, "?step=hostile"),
    ]
    shares = [0, 0.71, 0.88, 0.93, 0.956, 0.97, 0.979, 0.985, 0.989, 0.992, 0.995, 0.997, 0.9985, 0.9995, 1]
    day = 86_400_000.0
    current = [(n * day, n * day) for n in range(20, 50)]
    consumers = [
        Series("playback.daily", tuple((at, at - (0.2 + at // day % 3 / 4) * day) for at, _ in current)),
        Series("ads.audience", tuple((at, at - (0.5 + (at / day - 20) / 7) * day) for at, _ in current)),
        Series("members.sessions", tuple((at, at - 0.05 * day) for at, _ in current)),
    ]
    return {
        "sparkline": sparkline([3, 4, 4, 6, 7, 7, 9, 8, 10, 12, 11, 13, 14, 13, 15], label="saved, 15 days"),
        "spans": run_spans(spans, now=36_000),
        "lateness": lateness(
            [(float(n), share * 0.9, share) for n, share in enumerate(shares)], lookback=3, missed="7 %"
        ),
        "lag": lag_against_expiry(consumers, current, expires_after=5 * day),
    }


def _styles() -> Markup:
    names = [name for name in ("style.css", "pictures.css") if (STATIC / name).exists()]
    return Markup("").join(Markup('<link rel="stylesheet" href="/static/{}">').format(name) for name in names)


def _scripts() -> Markup:
    names = sorted(path.name for path in (STATIC / "elements").glob("*.js"))
    return Markup("").join(
        Markup('<script type="module" src="/static/elements/{}"></script>').format(name) for name in names
    )


@dataclass(slots=True)
class Gallery:
    """The running server: its address, and a log that can grow."""

    address: str = ""
    log: str = LOG
    logs: dict[str, str] = field(default_factory=dict)
    """Those of other attempts."""
    searches: list[str] = field(default_factory=list)


class _Handler(BaseHTTPRequestHandler):
    gallery: ClassVar[Gallery]

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        file = STATIC / parts.path.removeprefix("/static/")
        if parts.path.startswith("/static/") and file.is_file():
            self._answer(file.read_bytes(), _TYPES[file.suffix])
        elif parts.path == "/logs":
            self._json(self._log(query))
        elif parts.path == "/api/v3/search":
            self.gallery.searches.append(query["q"])
            found = {
                "kind": "workflow",
                "title": HOSTILE,
                "matches": [{"field": "owner", "value": "<b>"}],
                "path": "/?found=workflow",
            }
            table = {"kind": "table", "title": "lake.orders", "matches": [], "path": "/?found=table"}
            self._json({"elements": [found, table] if query["q"] != "nope" else []})
        elif parts.path.startswith("/static/"):
            self.send_error(404)
        else:
            self._answer(page().encode(), "text/html; charset=utf-8")

    def _log(self, query: dict[str, str]) -> dict[str, Any]:
        log = self.gallery.logs.get(query["attempt"], self.gallery.log)
        whole = log.encode()
        if "find" in query:
            lines = log.splitlines(keepends=True)
            found = [
                {"offset": start, "line": n + 1, "text": line.strip()}
                for n, (start, line) in enumerate(zip(_starts(lines), lines, strict=True))
                if query["find"].lower() in line.lower()
            ]
            return {"matches": found[:100], "next_offset": None, "size": len(whole), "left_out": 0}
        start = int(query["offset"])
        start = max(0, len(whole) + start) if start < 0 else start
        text = whole[start : start + int(query["limit"])]
        return {
            "text": text.decode(),
            "offset": start,
            "next_offset": start + len(text),
            "size": len(whole),
            "left_out": 0,
        }

    def _json(self, document: dict[str, Any]) -> None:
        self._answer(json.dumps(document).encode(), "application/json")

    def _answer(self, body: bytes, media_type: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", media_type)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Security-Policy", POLICY)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def _starts(lines: list[str]) -> list[int]:
    starts, at = [], 0
    for line in lines:
        starts.append(at)
        at += len(line.encode())
    return starts


@contextmanager
def serve_gallery() -> Iterator[Gallery]:
    """Serve the page on a free port of this machine."""
    gallery = Gallery()
    handler = type("Handler", (_Handler,), {"gallery": gallery})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        gallery.address = f"http://127.0.0.1:{server.server_port}"
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield gallery
        server.shutdown()
        thread.join()
