"""Posting to an address that somebody wrote down: nowhere inside, no redirects, no longer than a limit."""

import ipaddress
import socket
import ssl
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from knowngood.app.domain.webhook import BadWebhook, DeliveryResponse
from knowngood.app.features.webhooks.http_client import SafeHttpClient, checked_url, is_public
from tests.waiting import PATIENCE_S
from tests.web.receiver import answer, receiving

BODY = b'{"type":"webhook.test"}'


def post(url: str, http_client: SafeHttpClient | None = None) -> DeliveryResponse:
    return (http_client or SafeHttpClient()).post(url, {"webhook-id": "msg_1"}, BODY)


@pytest.mark.parametrize("status", [200, 202, 204, 299])
def test_what_is_taken_is_a_success_and_comes_in_as_it_was_sent(status: int) -> None:
    with receiving(answer(status)) as receiver:
        told = post(receiver.address)
    assert (told.is_success, told.status) == (True, status)
    (got,) = receiver.received
    assert (got.path, got.body, got.id) == ("/hook?team=a", BODY, "msg_1")


@pytest.mark.parametrize("status", [400, 401, 404, 410, 500])
def test_what_is_refused_says_so_with_the_receivers_first_words(status: int) -> None:
    with receiving(answer(status, b"no\x1b[31m such \n hook " + b"x" * 5000)) as receiver:
        told = post(receiver.address)
    assert not told.is_success
    assert told.said.startswith(f"{status} ")
    assert "no [31m such hook xxx" in told.said
    assert len(told.said) < 300


def test_a_redirect_is_not_followed() -> None:
    with receiving() as second, receiving(answer(307, Location=second.address)) as first:
        told = post(first.address)
        assert second.received == []
    assert (told.is_success, told.status) == (False, 307)
    assert "redirects are not followed" in told.said


def test_a_receiver_that_asks_for_time_is_heard() -> None:
    with receiving(answer(429, Retry_After="120")) as receiver:
        assert post(receiver.address).retry_after_s == 120
    with receiving(answer(429, Retry_After="Fri, 31 Dec 1999 23:59:59 GMT")) as receiver:
        assert post(receiver.address).retry_after_s is None


def test_nobody_there_is_an_answer_too() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    told = post(f"http://127.0.0.1:{port}/")
    assert (told.status, told.is_success) == (None, False)
    assert "ConnectionRefusedError" in told.said


def silent(request: BaseHTTPRequestHandler, left: threading.Event) -> None:
    left.wait(PATIENCE_S)


def trickling(request: BaseHTTPRequestHandler, left: threading.Event) -> None:
    """Each byte comes in time, and the answer never does."""
    request.wfile.write(b"HTTP/1.1 200 OK\r\n")
    with suppress(OSError):
        while not left.wait(0.05):
            request.wfile.write(b"X: y\r\n")
            request.wfile.flush()


@pytest.mark.parametrize("how", [silent, trickling])
def test_a_receiver_that_is_silent_or_trickles_is_left_after_the_limit(
    how: Callable[[BaseHTTPRequestHandler, threading.Event], None],
) -> None:
    left = threading.Event()
    with receiving(lambda request: how(request, left)) as receiver:
        told = post(receiver.address, SafeHttpClient(limit_s=0.5))
        left.set()
    assert (told.status, told.said) == (None, "no answer within 0.5 s")


def test_what_is_no_http_is_an_answer_too() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def speak() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(10_000)
                connection.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")

        thread = threading.Thread(target=speak)
        thread.start()
        told = post(f"http://127.0.0.1:{server.getsockname()[1]}/")
        thread.join()
    assert (told.status, told.is_success) == (None, False)
    assert "BadStatusLine" in told.said


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://example.org/hook", "would be sent unencrypted"),
        ("http://127.0.0.1.example.org/", "would be sent unencrypted"),
        ("http://10.0.0.1/", "would be sent unencrypted"),
        ("ftp://example.org/", "no address that changes can be sent to"),
        ("file:///etc/passwd", "no address that changes can be sent to"),
        ("https://", "no address that changes can be sent to"),
        ("example.org", "no address that changes can be sent to"),
        ("https://me:secret@example.org/", "a name or a password"),
        ("https://example.org:99999/", "is no address"),
        ("https://[::1/", "is no address"),
        ("https://example.org/a b", "no spaces"),
        ("https://example.org/\r\nHost: other", "no spaces"),
        ("https://example.org/" + "a" * 2000, "at most 2000"),
        ("https://b\u00fccher.example/", "ASCII"),
    ],
)
def test_an_address_that_cannot_be_is_refused_before_anything_is_sent(url: str, said: str) -> None:
    with pytest.raises(BadWebhook, match=said):
        checked_url(url)
    assert post(url).said.startswith("not sent: ")


@pytest.mark.parametrize(
    "address",
    [
        "10.1.2.3",
        "172.16.0.1",
        "192.168.1.1",
        "127.0.0.1",
        "0.0.0.0",  # noqa: S104 - nothing is bound to it
        "169.254.169.254",
        "100.64.0.1",
        "224.0.0.1",
        "255.255.255.255",
        "::1",
        "::",
        "fe80::1",
        "fc00::1",
        "ff02::1",
        "::ffff:10.0.0.1",
        "::ffff:169.254.169.254",
        "64:ff9b::a00:1",
        "2002:a00:1::",
        "64:ff9b:1::a00:1",
        "64:ff9b:1::101:101",
        "64:ff9b::c000:8",
        "192.0.0.8",
        "192.0.0.170",
        "::ffff:192.0.0.8",
        "192.88.99.1",
        "198.18.0.1",
        "203.0.113.1",
        "240.0.0.1",
        "3fff::1",
        "3fff:fff:ffff::1",
        "5f00::1",
        "2001:db8::1",
        "2001:2::1",
        "100::1",
        "100:0:0:1::1",
        "fec0::1",
        "::10.0.0.1",
        "::1.1.1.1",
        "4000::1",
    ],
)
def test_an_address_inside_is_none_of_the_public_ones_however_it_is_written(address: str) -> None:
    assert not is_public(ipaddress.ip_address(address))


@pytest.mark.parametrize(
    "address", ["1.1.1.1", "192.0.0.9", "192.0.1.1", "2606:4700::1111", "2a00::1", "::ffff:1.1.1.1", "64:ff9b::101:101"]
)
def test_a_public_address_is_one(address: str) -> None:
    assert is_public(ipaddress.ip_address(address))


@pytest.mark.parametrize(
    "url",
    [
        "https://10.255.255.1/",
        "https://169.254.169.254/latest/meta-data",
        "https://[fe80::1]/",
        "https://192.0.0.8/",
        "https://[64:ff9b:1::a00:1]/",
        "https://[5f00::1]/",
    ],
)
def test_a_private_address_is_not_connected_to(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def connect(*_: object, **__: object) -> object:
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket, "create_connection", connect)
    told = post(url, SafeHttpClient(limit_s=PATIENCE_S))
    assert told.status is None
    assert "no public address; set KNOWNGOOD_WEBHOOKS_PRIVATE=true" in told.said
    assert told.took_s < PATIENCE_S


def test_a_name_that_leads_inside_is_not_connected_to_unless_that_is_allowed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A name server may say anything. The certificate is asked for by the name, the connection made by the address."""
    real = socket.getaddrinfo

    def answers(host: str, port: int, *args: object, **named: object) -> object:
        return real("127.0.0.1" if host == "hooks.example" else host, port, *args, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(socket, "getaddrinfo", answers)
    server, client = certificates(tmp_path, "hooks.example")
    with receiving(tls=server) as receiver:
        url = receiver.address.replace("127.0.0.1", "hooks.example")
        refused = post(url, SafeHttpClient(tls=client))
        assert "hooks.example is 127.0.0.1, which is no public address" in refused.said
        assert receiver.received == []
        assert post(url, SafeHttpClient(tls=client, allows_private=True)).status == 204
        assert receiver.received[0].headers["host"] == url.split("/")[2]


def test_a_certificate_that_nobody_vouches_for_or_of_another_name_is_not_trusted(tmp_path: Path) -> None:
    server, client = certificates(tmp_path, "hooks.example")
    with receiving(tls=server) as receiver:
        for http_client in (SafeHttpClient(tls=client), SafeHttpClient()):
            told = post(receiver.address, http_client)
            assert (told.status, "CERTIFICATE_VERIFY_FAILED" in told.said) == (None, True)
        assert receiver.received == []


def certificates(folder: Path, name: str) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """A server that is `name`, and a client that trusts it."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = made.public_bytes(serialization.Encoding.PEM)
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path = folder / "server.pem"
    path.write_bytes(pem + secret)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(path)
    client = ssl.create_default_context(cadata=pem.decode())
    return server, client
