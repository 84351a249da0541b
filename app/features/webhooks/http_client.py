"""One POST to an address that somebody wrote down: nowhere inside, no redirects, no longer than a limit.

A server that sends wherever it is told to is a way into its own network. So only https is spoken (http on the own
machine alone), the name is looked up once, every address it has is checked, and the one that was checked is the one
that is connected to: a name that means another address the next moment leads nowhere.
"""

import ipaddress
import socket
import ssl
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from threading import Timer
from urllib.parse import SplitResult, urlsplit

from knowngood.app.domain.webhook import BadWebhook, DeliveryResponse

_LONGEST_URL = 2000
_READ_BYTES = 200  # of the answer, for the log
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_UNICAST = ipaddress.ip_network("2000::/3")  # all that IANA has given out of IPv6
# What Python 3.11 calls global and IANA's registries of special addresses do not.
_SPECIAL = tuple(map(ipaddress.ip_network, ("192.0.0.0/24", "192.88.99.0/24", "3fff::/20")))
_GLOBAL = tuple(map(ipaddress.ip_network, ("192.0.0.9/32", "192.0.0.10/32")))  # anycast within the first of these

Ip = ipaddress.IPv4Address | ipaddress.IPv6Address


@dataclass(frozen=True)
class SafeHttpClient:
    """How messages are posted. `allows_private` lets addresses of private networks be reached; `limit_s` is for all of
    one try, however slowly the other side speaks.
    """

    allows_private: bool = False
    limit_s: float = 15.0
    tls: ssl.SSLContext | None = None

    def post(self, url: str, headers: Mapping[str, str], body: bytes) -> DeliveryResponse:
        """The answer; never raises for what the network does. Redirects are answers like others."""
        began = time.monotonic()
        try:
            target = checked_url(url)
            path = f"{target.path or '/'}{f'?{target.query}' if target.query else ''}"
            with self._connected(target) as connection:
                connection.request("POST", path, body=body, headers={**headers, "Connection": "close"})
                response = connection.getresponse()
                said = _said(response)
                wait = _retry_after(response)
            if _since(began) >= self.limit_s:
                raise TimeoutError  # cut off in the middle, which reads like an end
            return DeliveryResponse(response.status, said, _since(began), wait)
        except BadWebhook as refusal:
            return DeliveryResponse(None, f"not sent: {refusal}", _since(began))
        except (OSError, HTTPException, ValueError) as error:
            is_late = time.monotonic() - began >= self.limit_s
            said = f"no answer within {self.limit_s:g} s" if is_late else f"{type(error).__name__}: {error}"
            return DeliveryResponse(None, said, _since(began))

    @contextmanager
    def _connected(self, target: SplitResult) -> Iterator[HTTPConnection]:
        host, is_tls = target.hostname or "", target.scheme == "https"
        port = target.port or (443 if is_tls else 80)
        address = self._reachable(host, port)
        until = time.monotonic() + self.limit_s
        wired = socket.create_connection((str(address), port), timeout=self.limit_s)
        # A timeout of the socket is for each read, so that a trickle would never end. TLS takes a connection over from
        # its socket, so it is cut by a second one.
        with wired.dup() as spare, _ended_after(max(0.0, until - time.monotonic()), spare):
            try:
                if is_tls:
                    wired = (self.tls or ssl.create_default_context()).wrap_socket(wired, server_hostname=host)
                connection = HTTPSConnection(host, port) if is_tls else HTTPConnection(host, port)
                connection.sock = wired
                yield connection
            finally:
                wired.close()

    def _reachable(self, host: str, port: int) -> Ip:
        """The first address of the host, where all of them may be reached. Raises BadWebhook."""
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        addresses = [ipaddress.ip_address(str(place[4][0]).partition("%")[0]) for place in found]
        for address in addresses:
            if is_loopback_name(host) and address.is_loopback:
                continue
            if not self.allows_private and not is_public(address):
                raise BadWebhook(
                    f"{host} is {address}, which is no public address; set KNOWNGOOD_WEBHOOKS_PRIVATE=true to allow it"
                )
        return addresses[0]


def checked_url(url: str) -> SplitResult:
    """The parts of an address that webhooks may have. Raises BadWebhook."""
    if len(url) > _LONGEST_URL or not url.isascii() or not url.isprintable() or " " in url:
        raise BadWebhook(f"an address has at most {_LONGEST_URL} printable ASCII characters and no spaces")
    try:
        found = urlsplit(url)
        host, _ = found.hostname, found.port
    except ValueError as error:
        raise BadWebhook(f'"{url}" is no address: {error}') from None
    if found.scheme not in {"https", "http"} or not host:
        raise BadWebhook(f'"{url}" is no address that changes can be sent to; write https://host/path')
    if found.scheme == "http" and not is_loopback_name(host):
        raise BadWebhook(f'"{url}" would be sent unencrypted; write https://, or http:// for this machine alone')
    if found.username is not None or found.password is not None:
        raise BadWebhook("an address with a name or a password in it is shown in logs; leave them out")
    return found


def is_loopback_name(host: str) -> bool:
    """Whether the address names the own machine by itself, not by what a name server says."""
    if host == "localhost":
        return True
    with suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return False


def is_public(address: Ip) -> bool:
    """Whether it can be reached from anywhere, also where one address is written inside another."""
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else None)
        if inner is None and address in _NAT64:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            return is_public(inner)
        if address not in _UNICAST:
            return False
    if any(address in special for special in _SPECIAL):
        return any(address in one for one in _GLOBAL)
    return address.is_global and not address.is_multicast


def _said(response: HTTPResponse) -> str:
    """The part of an answer that a person wants to see in a log, in one line."""
    start = response.read(_READ_BYTES).decode("utf-8", "replace")
    words = " ".join("".join(sign if sign.isprintable() else " " for sign in start).split())
    moved = response.headers.get("Location")
    said = f"{response.status} {response.reason}"
    if moved:
        return f"{said}: redirects are not followed ({moved[:100]})"
    return f"{said}: {words}" if words and response.status >= 300 else said  # noqa: PLR2004 - success needs no words


def _retry_after(response: HTTPResponse) -> float | None:
    asked = response.headers.get("Retry-After", "").strip()
    return float(asked) if asked.isascii() and asked.isdigit() and len(asked) < 10 else None  # noqa: PLR2004 - seconds


@contextmanager
def _ended_after(wait_s: float, connection: socket.socket) -> Iterator[None]:
    watch = Timer(wait_s, _end, [connection])
    watch.daemon = True
    watch.start()
    try:
        yield
    finally:
        watch.cancel()


def _end(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


def _since(began: float) -> float:
    return round(time.monotonic() - began, 3)
