"""Generated playback events, by Spark SQL alone: pseudo-random, and the same every time. Pure."""

from dataclasses import dataclass
from datetime import date, timedelta

FIRST_DAY = date(2026, 1, 1)
WINDOW = 14
"""The number of days of the lookback; no event arrives later than that."""
_RESENT = 0.01
"""The fraction of events that are delivered twice on their day."""
_CORRECTED = 10
"""The percentage of late deliveries that correct an earlier event."""
_ROWS_A_TASK = 260_000
"""Rows per file: two million rows a day make eight files, which keep two or more cores busy."""
_PRIME = 1_000_000_007


@dataclass(frozen=True, slots=True)
class Shape:
    """How many events there are, and how many of them are late."""

    rows: int
    """Events per day that arrive in time."""
    late: float
    """Late events, as a fraction of ``rows``."""

    @property
    def late_rows(self) -> int:
        """Late deliveries per day."""
        return round(self.rows * self.late)

    @property
    def deliveries(self) -> int:
        """Everything that arrives on a day."""
        return self.rows + self._resent + self.late_rows

    @property
    def _resent(self) -> int:
        return round(self.rows * _RESENT)

    def arrivals(self, first: int, days: int) -> str:
        """Return the query for the arrivals of some days, counted from 0."""
        tasks = days * max(2, -(-self.deliveries // _ROWS_A_TASK))
        ids = f"range({first * self.deliveries}, {(first + days) * self.deliveries}, 1, {tasks})"
        return f"{self._drawn(ids)}\n{_event(accounts=max(1, self.rows // 10))}"

    def _drawn(self, ids: str) -> str:
        """Return the query for the events of deliveries, with random numbers: r per delivery, a and b per event.

        The number c is per event and day of delivery: so a correction has other content, but a copy does not.
        """
        in_time, due = self.rows, self.rows + self._resent
        return f"""WITH delivered AS (
  SELECT CAST(id DIV {self.deliveries} AS INT) AS arrival, id % {self.deliveries} AS n,
    pmod(xxhash64(id, 7), {_PRIME}) AS r
  FROM {ids}
), placed AS (
  SELECT arrival, n >= {in_time} AS is_again, n >= {due} AS is_late, r,
    CASE WHEN n < {due} THEN arrival ELSE arrival - least(arrival, 1 + r % {WINDOW - 1}) END AS day,
    CASE
      WHEN n < {in_time} THEN n
      WHEN n < {due} OR r % 100 < {_CORRECTED} THEN r % {in_time}
      ELSE {in_time} + arrival * {self.late_rows} + n - {due}
    END AS i
  FROM delivered
), drawn AS (
  SELECT *, pmod(xxhash64(day, i), {_PRIME}) AS a, pmod(xxhash64(i, day), {_PRIME}) AS b,
    pmod(xxhash64(day, i, arrival), {_PRIME}) AS c, md5(concat(day, '-', i)) AS h
  FROM placed
)"""


def day(number: int) -> date:
    """Return a day by its number."""
    return FIRST_DAY + timedelta(days=number)


def _event(*, accounts: int) -> str:
    """Return the columns of playback_table."""
    epoch = (FIRST_DAY - date(1970, 1, 1)).days
    return f"""SELECT
  shiftleft({epoch}L + day, 34) + ((i * 2654435769) & 17179869183) AS event_id,
  timestamp_millis(({epoch}L + arrival) * 86400000 + least(86399999, CASE
    WHEN is_late THEN r % 86400000
    WHEN is_again THEN a % 86400000 + 600000 + r % 3600000
    ELSE a % 86400000 + c % 240000
  END)) AS arrived_at,
  timestamp_millis(({epoch}L + day) * 86400000 + a % 86400000) AS event_at,
  b % {accounts} AS account_id,
  {DEVICE} AS device,
  {PAYLOAD} AS payload
FROM drawn"""


def one_of(number: str, *words: str) -> str:
    """Return SQL that picks a word by a random number."""
    return f"elt(1 + CAST({number} % {len(words)} AS INT), {', '.join(repr(word) for word in words)})"


def _json(value: object) -> list[str]:
    """Return the parts of a JSON text, all SQL expressions: a Python string is the SQL of a number or a boolean."""
    match value:
        case dict():
            parts = ["'{'"]
            for at, (key, inner) in enumerate(value.items()):
                parts += [f"'{',' if at else ''}\"{key}\":'", *_json(inner)]
            return [*parts, "'}'"]
        case list():
            parts = ["'['"]
            for at, inner in enumerate(value):
                parts += [*(["','"] if at else []), *_json(inner)]
            return [*parts, "']'"]
        case _Text(sql):
            return ["'\"'", sql, "'\"'"]
        case _:
            return [str(value)]


@dataclass(frozen=True, slots=True)
class _Text:
    """SQL of a text."""

    sql: str


def _text(*words: str, by: str = "a") -> _Text:
    return _Text(one_of(by, *words) if len(words) > 1 else repr(words[0]))


def _glued(parts: list[str]) -> str:
    """Return one concat, with neighbouring literals joined."""
    glued: list[str] = []
    for part in parts:
        if glued and part.startswith("'") and glued[-1].startswith("'"):
            glued[-1] = glued[-1][:-1] + part[1:]
        else:
            glued.append(part)
    return f"concat({', '.join(glued)})"


_COUNTRIES = ("NL", "DE", "FR", "BR", "US", "JP")
_FIELDS = {
    "schema": _text("playback.v7"),
    "session": {
        "id": _Text("h"),
        "app": _text("11.4.0", "11.5.2", "12.0.0", "12.0.1", "12.1.0", by="b"),
        "locale": _text("nl-NL", "de-DE", "fr-FR", "pt-BR", "en-US", "ja-JP", by="b"),
        "country": _text(*_COUNTRIES, by="b"),
        "network": {
            "type": _text("wifi", "ethernet", "cellular"),
            "asn": "1000 + a % 400",
            "down_kbps": "2000 + c % 90000",
            "rtt_ms": "5 + a % 200",
        },
    },
    "title": {
        "id": "80000000 + a % 9000",
        "kind": _text("episode", "movie", "trailer"),
        "season": "a % 9",
        "episode": "a % 24",
        "duration_s": "1200 + a % 6000",
    },
    "play": {
        "position_s": "c % 7200",
        "watched_s": "c % 5400",
        "speed": one_of("b", "1.0", "1.25", "1.5"),
        "completed": "c % 5 = 0",
        "autoplay": "a % 4 = 0",
    },
    "quality": {
        "bitrate_kbps": "800 + c % 15000",
        "resolution": _text("720p", "1080p", "1440p", "2160p"),
        "codec": _text("av1", "hevc", "avc1"),
        "hdr": "a % 2 = 0",
        "rebuffers": "c % 4",
        "rebuffer_ms": "(c % 4) * (b % 900)",
        "startup_ms": "300 + b % 2500",
        "dropped_frames": "c % 60",
        "bytes": "1000000 + c % 900000000",
    },
    "audio": {"language": _text("nl", "de", "fr", "pt", "en", "ja", by="b"), "codec": _text("eac3"), "channels": "2"},
    "subtitles": {"language": _text("nl", "de", "fr", "pt", "en", "none"), "forced": "'false'"},
    "experiments": [
        {"test": "40000 + b % 50", "cell": "1 + b % 4"},
        {"test": "41000 + a % 50", "cell": "1 + a % 4"},
        {"test": "42017", "cell": "2"},
    ],
    "cdn": {
        "pop": _text("ams1", "fra2", "cdg1", "gru1", "iad3", "nrt1"),
        "cache": _text("miss", "hit", "hit", "hit", by="b"),
        "server": _Text("concat('oca-', a % 64, '-', b % 16)"),
    },
    "client": {
        "sdk": _text("playback-sdk/7.31.2"),
        "agent": _text("PlaybackClient/12.1 (like Gecko; en) Renderer/118.0 DRM/3.2"),
        "build": _text("release"),
        "capabilities": [_text("drm:l1"), _text("hdr10"), _text("dolby-vision"), _text("spatial-audio")],
        "memory_mb": "512 * (1 + a % 8)",
        "uptime_s": "b % 100000",
    },
}
"""What a device reports about a play: about a kilobyte, of which the pipeline uses thirteen fields."""
_DEVICES = (
    "Samsung SmartTV (Tizen/",
    " LG webOS.TV-",
    "iPhone15,3; iOS ",
    "iPad13,1; iPadOS ",
    "ROKU Express/",
    "Android; Pixel 8 Pro; ",
    "Mozilla/5.0 (Windows NT 10.0) Chrome/",
    "PlayStation 5 / ",
)
PAYLOAD = _glued(_json(_FIELDS))
"""The JSON text, a kilobyte."""
DEVICE = f"concat({one_of('a', *_DEVICES)}, b % 18, '.', a % 7, {one_of('b', ')', ' build 43', '')})"
"""SQL of the device's user agent."""
