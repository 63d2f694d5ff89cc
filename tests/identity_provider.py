"""An identity provider (OpenID Connect) for tests: real HTTP, real keys, and every mistake that a provider can make."""

import hashlib
import json
import threading
import time
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm

KEY = rsa.generate_private_key(public_exponent=65_537, key_size=2_048)
OTHER_KEY = rsa.generate_private_key(public_exponent=65_537, key_size=2_048)


@dataclass
class FakeProvider:
    """What it says; each test changes what it likes."""

    issuer: str = ""
    claims: dict[str, Any] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)
    key: Any = KEY
    algorithm: str = "RS256"
    key_id: str = "one"
    published: dict[str, Any] = field(default_factory=lambda: {"one": KEY})
    client_secret: str | None = None
    jwks: Any = None
    is_away: bool = False
    asked: list[str] = field(default_factory=list)
    codes: dict[str, dict[str, str]] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        """Return what discovery finds."""
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
        } | self.metadata

    def keys(self) -> Any:
        """Return the public keys."""
        if self.jwks is not None:
            return self.jwks
        published = [
            json.loads(RSAAlgorithm.to_jwk(key.public_key())) | {"kid": name, "use": "sig", "alg": "RS256"}
            for name, key in self.published.items()
        ]
        return {"keys": published}

    def authorized(self, query: dict[str, str]) -> str:
        """Sign a user in, and return the address to which the browser is redirected."""
        code = hashlib.sha256(query["state"].encode()).hexdigest()
        self.codes[code] = query
        return f"{query['redirect_uri']}?{urlencode({'code': code, 'state': query['state']})}"

    def token(self, form: dict[str, str]) -> dict[str, Any]:
        """Give a token for a code, once, to who can show the verifier."""
        query = self.codes.pop(form.get("code", ""), None)
        challenge = urlsafe_b64encode(hashlib.sha256(form.get("code_verifier", "").encode()).digest()).decode()
        if self.client_secret is not None and form.get("client_secret") != self.client_secret:
            return {"error": "invalid_client"}
        if query is None or challenge.rstrip("=") != query["code_challenge"]:
            return {"error": "invalid_grant"}
        now = int(time.time())
        claims = {
            "iss": self.issuer,
            "aud": query["client_id"],
            "sub": "1234",
            "nonce": query["nonce"],
            "iat": now,
            "exp": now + 300,
            "preferred_username": "ann",
            "groups": ["data"],
        }
        given = {name: value for name, value in (claims | self.claims).items() if value is not None}
        return {"id_token": jwt.encode(given, self.key, self.algorithm, headers={"kid": self.key_id})}


@contextmanager
def provider() -> Iterator[FakeProvider]:
    """Serve a provider on a free port."""
    fake = FakeProvider()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path, query = self._asked()
            match path:
                case "/.well-known/openid-configuration":
                    self._answer(fake.document())
                case "/keys":
                    self._answer(fake.keys())
                case "/authorize":
                    self.send_response(302)
                    self.send_header("Location", fake.authorized(query))
                    self.end_headers()
                case _:
                    self._answer(None)

        def do_POST(self) -> None:
            self._asked()
            body = self.rfile.read(int(self.headers["content-length"])).decode()
            self._answer(fake.token({name: values[0] for name, values in parse_qs(body).items()}))

        def _asked(self) -> tuple[str, dict[str, str]]:
            parts = urlsplit(self.path)
            fake.asked.append(parts.path)
            return parts.path, {name: values[0] for name, values in parse_qs(parts.query).items()}

        def _answer(self, document: Any) -> None:
            body = json.dumps(document).encode()
            status = 503 if fake.is_away else 400 if document is None or "error" in document else 200
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    fake.issuer = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield fake
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
