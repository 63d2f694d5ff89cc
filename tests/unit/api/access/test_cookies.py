"""Cookies, as browsers send and keep them."""

import pytest
from starlette.responses import Response

from calve.api.access.cookies import SESSION, cookie_in, set_cookie


def test_a_cookie_is_found_among_others() -> None:
    """By its whole name."""
    headers = {"cookie": f"a=b; {SESSION}=secret; c=d"}
    assert cookie_in(headers, SESSION) == "secret"
    assert cookie_in({"cookie": f"x{SESSION}=secret"}, SESSION) is None
    assert cookie_in({}, SESSION) is None


@pytest.mark.parametrize("text", [SESSION, f'{SESSION}="\\012"', f"{SESSION}=a\x01b", f"[{SESSION}]=a"])
def test_what_is_no_cookie_breaks_nothing(text: str) -> None:
    """Whoever sends it is nobody."""
    assert cookie_in({"cookie": text}, SESSION) in {None, "\n", "a"}


@pytest.mark.parametrize("is_secure", [True, False])
def test_a_cookie_is_kept_from_scripts_and_other_sites(*, is_secure: bool) -> None:
    """Where there is TLS, it is sent by nothing else."""
    answer = Response()
    set_cookie(answer, SESSION, "secret", is_secure=is_secure, seconds=60)
    kept = set(answer.headers["set-cookie"].split("; "))
    assert kept == {f"{SESSION}=secret", "Path=/", "HttpOnly", "SameSite=Strict", "Max-Age=60"} | (
        {"Secure"} if is_secure else set()
    )


def test_a_cookie_may_end_with_the_browser() -> None:
    """Unless it is told how long it lives; no time at all takes it away."""
    answer = Response()
    set_cookie(answer, SESSION, "secret", is_secure=False, seconds=None)
    set_cookie(answer, SESSION, "", is_secure=False, seconds=0)
    kept, gone = answer.headers.getlist("set-cookie")
    assert "Max-Age" not in kept
    assert "Max-Age=0" in gone
