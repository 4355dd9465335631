"""Users that Apache signs in with OpenID Connect (mod_auth_openidc), at a small provider; RANKWATCH_APACHE: the folder with both."""

import base64
import hashlib
import hmac
import http.cookiejar
import json
import os
import subprocess
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.commands import until
from tests.ports import free_port
from tests.served import Served
from tests.unit.serve.test_proxy_users import BOARD, board, listens, with_groups

ROOT = Path(os.environ.get("RANKWATCH_APACHE", "/"))
APACHE, MODULES = ROOT / "usr/sbin/apache2", ROOT / "usr/lib/apache2/modules"
SECRET = "a client secret of 32 characters"
GROUPS = {"ann": ["readers", "writers"], "bob": ["others"]}

CONFIG = """
ServerRoot {folder}
ServerName 127.0.0.1
PidFile {folder}/pid
Mutex file:{folder}
ErrorLog {folder}/error.log
Listen 127.0.0.1:{port}
{modules}
OIDCProviderMetadataURL {issuer}/.well-known/openid-configuration
OIDCClientID rankwatch
OIDCClientSecret "{secret}"
OIDCRedirectURI http://127.0.0.1:{port}/signed-in
OIDCCryptoPassphrase "a passphrase of the cookies"
OIDCScope "openid groups"
OIDCRemoteUserClaim sub
OIDCPassClaimsAs environment
OIDCClaimDelimiter ,
OIDCIDTokenSignedResponseAlg HS256
<Location />
    AuthType openid-connect
    Require valid-user
    # `set` replaces what the client has sent.
    RequestHeader set X-Forwarded-User "expr=%{{REMOTE_USER}}"
    RequestHeader set X-Forwarded-Groups "expr=%{{reqenv:OIDC_CLAIM_groups}}"
    RequestHeader unset Authorization
    ProxyPass {behind}/ flushpackets=on
    ProxyPreserveHost on
</Location>
<Location /signed-in>
    ProxyPass !
</Location>
"""
LOADED = (
    ["mpm_event", "authn_core", "authz_core", "authz_user", "headers", "proxy", "proxy_http", "auth_openidc"]
)  # fmt: skip


def encoded(part):
    return base64.urlsafe_b64encode(part).rstrip(b"=").decode()


class Provider(BaseHTTPRequestHandler):
    """An OpenID provider whose users need no password: `login_as` of the test is who signs in next."""

    login_as, nonces = "ann", {}

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        asked = dict(urllib.parse.parse_qsl(url.query))
        issuer = self.server.issuer
        if url.path == "/.well-known/openid-configuration":
            self.answer(
                {
                    "issuer": issuer,
                    "authorization_endpoint": f"{issuer}/authorize",
                    "token_endpoint": f"{issuer}/token",
                    "jwks_uri": f"{issuer}/keys",
                    "response_types_supported": ["code"],
                    "subject_types_supported": ["public"],
                    "id_token_signing_alg_values_supported": ["HS256"],
                }
            )
        elif url.path == "/keys":
            self.answer({"keys": []})
        else:
            code = f"{self.login_as}-{len(self.nonces)}"
            self.nonces[code] = asked["nonce"]
            self.send_response(302)
            self.send_header("Location", f"{asked['redirect_uri']}?code={code}&state={asked['state']}")
            self.end_headers()

    def do_POST(self):
        form = dict(urllib.parse.parse_qsl(self.rfile.read(int(self.headers["Content-Length"])).decode()))
        user, now = form["code"].partition("-")[0], int(time.time())
        claims = {"iss": self.server.issuer, "aud": "rankwatch", "sub": user, "iat": now, "exp": now + 300}
        claims |= {"nonce": self.nonces.pop(form["code"]), "groups": GROUPS[user]}
        text = ".".join(encoded(json.dumps(part).encode()) for part in ({"alg": "HS256", "typ": "JWT"}, claims))
        signature = encoded(hmac.digest(SECRET.encode(), text.encode(), hashlib.sha256))
        self.answer({"access_token": "x", "token_type": "Bearer", "id_token": f"{text}.{signature}"})

    def answer(self, content):
        body = json.dumps(content).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Browser:
    """Keeps cookies, and follows redirects."""

    def __init__(self, url):
        self._url, jar = url, http.cookiejar.CookieJar()
        self._opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))

    def sign_in(self, user):
        """Open the page, as a user of the provider."""
        Provider.login_as = user
        with self._opener.open(urllib.request.Request(self._url, headers={"Accept": "text/html"}), timeout=10) as page:
            assert b"<title>rankwatch" in page.read()
        return self

    def ask(self, path, data=None, **headers):
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        request = urllib.request.Request(f"{self._url}/api/v1/{path}", data, headers)
        try:
            with self._opener.open(request, timeout=10) as answer:
                return answer.status, json.loads(answer.read()), answer.headers
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode(), error.headers


@pytest.fixture
def provider():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Provider)
    server.issuer = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.mark.fault(
    "attacks",
    "a client of Apache with OpenID adds headers, a token, or writes from another site",
    "replaced; refused with 403",
)
@pytest.mark.full
def test_users_of_an_openid_provider_have_the_scopes_of_their_groups(tmp_path, provider):
    if not (MODULES / "mod_auth_openidc.so").exists():
        pytest.skip("no Apache with OpenID Connect (Debian: apt-get install apache2 libapache2-mod-auth-openidc)")
    path = with_groups(tmp_path / "a.json", readers=["read:open*"], writers=["write:open*"])
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    rules = {"access_file": path, "trusted_proxies": "127.0.0.1"}
    with Served(board(), token="s3cret", loopback=False, rules=rules) as served:
        modules = "\n".join(f"LoadModule {name}_module {MODULES}/mod_{name}.so" for name in LOADED)
        config = CONFIG.format(
            folder=tmp_path, port=port, modules=modules, issuer=provider.issuer, secret=SECRET, behind=served.url
        )
        (tmp_path / "apache.conf").write_text(config)
        with subprocess.Popen([APACHE, "-X", "-f", tmp_path / "apache.conf"]) as apache:
            try:
                until(lambda: listens(port), "Apache")
                forged = {"X_Forwarded_User": "ann", "X_Forwarded_Groups": "readers,writers"}
                assert Browser(url).ask("caller", **forged)[0] == 401, "not signed in"
                bob = Browser(url).sign_in("bob")
                assert bob.ask("caller", **forged)[1]["name"] == "user:bob"
                assert bob.ask("summaries", **forged)[:2] == (200, [])
                assert bob.ask("summaries", Authorization="Bearer s3cret")[:2] == (200, []), "it passes no tokens on"
                ann = Browser(url).sign_in("ann")
                status, shown, headers = ann.ask("summaries")
                assert (status, [each["benchmark"] for each in shown]) == (200, [BOARD])
                assert headers["Cache-Control"] == "no-store"
                assert sorted(ann.ask("caller")[1]["scopes"]) == ["read:open*", "write:open*"]
                event = json.dumps({"benchmark": BOARD, "item_id": "new", "model": "a", "score": 1}).encode()
                posted = {"Content_Type": "application/x-ndjson"}
                assert ann.ask("events", event, **posted, Sec_Fetch_Site="cross-site")[0] == 403
                assert ann.ask("events", event, **posted)[0] == 200
                assert bob.ask("events", event, **posted)[0] == 403
            finally:
                apache.terminate()
                assert apache.wait(10) is not None, (tmp_path / "error.log").read_text()
