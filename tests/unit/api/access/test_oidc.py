"""The way to an identity provider, and back."""

import pytest

from calve.api.access.oidc import relative


@pytest.mark.parametrize(
    "target", ["//evil.example", "https://evil.example", "/\\evil.example", "evil", "/a\nb", "\\\\x"]
)
def test_no_redirect_leads_to_another_site(target: str) -> None:
    """52: only places on this site are left of what is given."""
    assert relative(target) == "/"
    assert relative("/workflows?x=1") == "/workflows?x=1"
