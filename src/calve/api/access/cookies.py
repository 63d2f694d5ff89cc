"""Cookies: how they are read, and how they are set."""

from http.cookies import CookieError, SimpleCookie

from starlette.responses import Response

from calve.api.access.origins import Headers

SESSION = "calve_session"
"""The cookie that holds a session."""
DEVICE = "calve_device"
"""The cookie that identifies a browser that has signed in before."""


def cookie_in(headers: Headers, name: str) -> str | None:
    """Return the value of a cookie, if the browser has sent it."""
    header = headers.get("cookie", "")
    if name not in header:
        return None
    try:
        cookie = SimpleCookie(header).get(name)
    except CookieError:
        return None
    return cookie.value if cookie is not None else None


def set_cookie(
    answer: Response, name: str, value: str, *, is_secure: bool, seconds: int | None, same_site: str = "Strict"
) -> None:
    """Set a cookie for some seconds, or until the browser is closed; 0 seconds deletes it."""
    cookie: SimpleCookie = SimpleCookie()
    cookie[name] = value
    cookie[name].update({"path": "/", "httponly": "yes", "samesite": same_site})
    if is_secure:
        cookie[name]["secure"] = "yes"
    if seconds is not None:
        cookie[name]["max-age"] = seconds
    answer.headers.append("Set-Cookie", cookie[name].OutputString())
