from __future__ import annotations

import socket
import ssl
from collections.abc import Iterable
from typing import Any

import httpcore
import pytest

from arena.llm import ErrorCode, LLMError, complete
from arena.llm.guard import BlockedAddressError, check_base_url, checked_addresses, is_public, resolve
from arena.llm.transport import Clock, GuardedBackend
from tests.arena.llm.loopback import ANSWER, Loopback, chunked, question

PUBLIC = ["8.8.8.8", "1.1.1.1", "2606:4700:4700::1111", "64:ff9b::808:808", "172.32.0.1", "100.128.0.1"]
REFUSED = [
    "0.0.0.0",
    "0.1.2.3",
    "10.0.0.1",
    "100.64.0.1",
    "100.100.100.200",
    "127.0.0.1",
    "127.255.255.254",
    "168.63.129.16",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.192",
    "192.0.2.1",
    "192.168.1.1",
    "198.18.0.1",
    "203.0.113.9",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::7f00:1",
    "::ffff:127.0.0.1",
    "::ffff:8.8.8.8",
    "64:ff9b::7f00:1",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::1",
    "2001::1",
    "2001:db8::1",
    "2002:7f00:1::",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fe80::1%eth0",
    "fec0::1",
    "ff02::1",
    "not an address",
    "",
]


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize("address", REFUSED)
def test_refused_addresses(address: str) -> None:
    assert not is_public(address)
    with pytest.raises(BlockedAddressError):
        checked_addresses("models.example", 443, allow_private=False, resolver=lambda *_: ["8.8.8.8", address])


@pytest.mark.parametrize("spelling", ["127.0.0.1", "127.1", "2130706433", "0x7f.0.0.1", "0177.0.0.1", "localhost"])
def test_other_spellings_of_loopback(spelling: str) -> None:
    with pytest.raises(BlockedAddressError):
        checked_addresses(spelling, 80, allow_private=False)


def test_operator_may_allow_private_addresses() -> None:
    assert checked_addresses("10.0.0.1", 80, allow_private=True) == ["10.0.0.1"]


def test_resolve_names_each_address_once(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("8.8.8.8", 443))
    other = (socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("2606:4700:4700::1111", 443, 0, 0))
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [entry, other, entry])
    assert resolve("models.example", 443) == ["8.8.8.8", "2606:4700:4700::1111"]


class _Connector(httpcore.NetworkBackend):
    def __init__(self, unreachable: Iterable[str] = ()) -> None:
        self.asked: list[tuple[str, float | None]] = []
        self._unreachable = set(unreachable)

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        self.asked.append((host, timeout))
        if host in self._unreachable:
            raise httpcore.ConnectError("unreachable")
        return httpcore.MockStream([])


def _backend(answers: list[list[str]], connector: _Connector, *, allow_private: bool = False) -> GuardedBackend:
    return GuardedBackend(Clock(), allow_private=allow_private, resolver=lambda *_: answers.pop(0), connector=connector)


class TestPinning:
    def test_connects_to_the_address_that_was_checked(self) -> None:
        connector = _Connector()
        # A second look-up would give the loopback address; there is none.
        answers = [["8.8.8.8"], ["127.0.0.1"]]
        _backend(answers, connector).connect_tcp("rebind.example", 443, timeout=5)
        assert [address for address, _ in connector.asked] == ["8.8.8.8"]
        assert answers == [["127.0.0.1"]]

    def test_new_connection_is_checked_again(self) -> None:
        connector = _Connector()
        backend = _backend([["8.8.8.8"], ["127.0.0.1"]], connector)
        backend.connect_tcp("rebind.example", 443)
        with pytest.raises(BlockedAddressError):
            backend.connect_tcp("rebind.example", 443)
        assert len(connector.asked) == 1

    def test_one_bad_address_spoils_the_name(self) -> None:
        connector = _Connector()
        with pytest.raises(BlockedAddressError):
            _backend([["8.8.8.8", "10.0.0.1"]], connector).connect_tcp("mixed.example", 443)
        assert connector.asked == []

    def test_next_address_is_tried_in_the_time_that_is_left(self) -> None:
        connector = _Connector(unreachable=["2606:4700:4700::1111"])
        _backend([["2606:4700:4700::1111", "8.8.8.8"]], connector).connect_tcp("two.example", 443, timeout=4)
        assert [address for address, _ in connector.asked] == ["2606:4700:4700::1111", "8.8.8.8"]
        first, second = (timeout for _, timeout in connector.asked)
        assert first == pytest.approx(2, abs=0.2)
        assert second == pytest.approx(4, abs=0.2)

    def test_last_failure_is_told(self) -> None:
        connector = _Connector(unreachable=["8.8.8.8", "1.1.1.1"])
        with pytest.raises(httpcore.ConnectError):
            _backend([["8.8.8.8", "1.1.1.1"]], connector).connect_tcp("down.example", 443, timeout=4)

    def test_name_without_an_address(self) -> None:
        with pytest.raises(httpcore.ConnectError, match="could not be resolved"):
            _backend([[]], _Connector()).connect_tcp("none.example", 443)

    def test_tls_is_asked_for_by_name(self) -> None:
        seen: list[str | None] = []

        class Stream(httpcore.MockStream):
            def start_tls(
                self,
                ssl_context: ssl.SSLContext,
                server_hostname: str | None = None,
                timeout: float | None = None,
            ) -> httpcore.NetworkStream:
                seen.append(server_hostname)
                return self

        class Connector(_Connector):
            def connect_tcp(self, *args: Any, **options: Any) -> httpcore.NetworkStream:
                super().connect_tcp(*args, **options)
                return Stream([b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"])

        connector = Connector()
        with httpcore.ConnectionPool(network_backend=_backend([["8.8.8.8"]], connector)) as pool:
            pool.request("GET", "https://models.example/v1")
        assert [address for address, _ in connector.asked] == ["8.8.8.8"]
        assert seen == ["models.example"]


def test_name_that_points_home_is_refused_on_the_wire(server: Loopback, monkeypatch: pytest.MonkeyPatch) -> None:
    home = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", server.port))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: home)
    server.replies = [chunked(ANSWER)]
    guarded = server.endpoint(base_url=f"http://models.example:{server.port}/v1", allow_private=False)
    with pytest.raises(LLMError) as caught:
        complete(guarded, question())
    assert caught.value.code is ErrorCode.BLOCKED_ADDRESS
    assert "models.example (127.0.0.1)" in caught.value.message
    assert server.connections == 0


def test_host_header_keeps_the_name(server: Loopback) -> None:
    server.replies = [chunked(ANSWER)]
    complete(server.endpoint(base_url=f"http://localhost:{server.port}/v1/"), question())
    assert server.received[0].headers["host"] == f"localhost:{server.port}"
    assert server.received[0].line.startswith("POST /v1/chat/completions ")


@pytest.mark.parametrize(
    "url",
    [
        "https://api.openai.com/v1",
        "http://localhost:8000",
        "http://[::1]:8000/v1/",
        "https://モデル.example/v1",
        "https://a_b.example",
    ],
)
def test_good_base_urls(url: str) -> None:
    assert check_base_url(url) == []


@pytest.mark.parametrize(
    ("url", "part"),
    [
        ("", "begin with https"),
        ("api.openai.com/v1", "begin with https"),
        ("file:///etc/passwd", "begin with https"),
        ("https:///v1", "no host name"),
        ("https://user:secret@api.example/v1", "user name or password"),
        ("https://@api.example/v1", "user name or password"),
        ("https://api.example/v1?key=1", "query"),
        ("https://api.example/v1?", "query"),
        ("https://api.example/v1#x", "fragment"),
        ("https://api.example:99999/v1", "not a valid address"),
        ("https://api.example:0/v1", "Port 0"),
        ("https://[::1/v1", "not a valid address"),
        ("https://api.exa mple/v1", "spaces"),
        ("https://api.example\\@evil.example", "backslashes"),
        ("https://api..example/v1", "host name that is not valid"),
        ("https://a%2eb.example/v1", "host name that is not valid"),
        ("https://api.example/v1/chat/completions", "Leave out"),
    ],
)
def test_bad_base_urls(url: str, part: str) -> None:
    assert any(part in problem for problem in check_base_url(url))


def test_every_problem_is_told() -> None:
    assert len(check_base_url("ftp://a:b@api.example/v1?x#y")) == 4


@pytest.mark.parametrize("url", ["http://localhost:1", "http://10.0.0.1", "http://[::1]", "http://db.internal/v1"])
def test_private_base_url_where_not_allowed(url: str) -> None:
    assert check_base_url(url, allow_private=True) == []
    assert check_base_url(url, allow_private=False)
