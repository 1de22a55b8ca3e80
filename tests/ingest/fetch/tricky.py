"""Addresses of this machine and of private networks in every spelling, and what is no URL at all.

Used wherever a URL is taken: none of these may be connected to.
"""

from __future__ import annotations

import socket
from typing import Any

# What a name server of an attacker could answer.
NAMES = {
    "loop.example": ["127.0.0.1"],
    "loop6.example": ["::1"],
    "meta.example": ["169.254.169.254"],
    "mapped.example": ["::ffff:10.0.0.1"],
    "both.example": ["10.0.0.1", "fd00::1"],
    "zero.example": ["0.0.0.0"],
    "127.0.0.1.nip.example": ["127.0.0.1"],
    "good.example": ["127.0.0.1"],
    "www.good.example": ["127.0.0.1"],
    "notgood.example": ["127.0.0.1"],
}

# fmt: off
REFUSED = [
    # this machine
    "http://127.0.0.1/", "https://127.0.0.1/", "http://127.255.255.254/", "http://127.0.0.1:8080/",
    "http://localhost/", "http://LocalHost/", "http://localhost./", "http://a.localhost/",
    "http://localhost.localdomain/", "http://0.0.0.0/", "http://0/", "http://[::1]/", "http://[::]/",
    "http://[0:0:0:0:0:0:0:1]/", "http://127.0.0.1./",
    # other ways to write it
    "http://127.1/", "http://127.0.1/", "http://2130706433/", "http://0x7f000001/",
    "http://017700000001/", "http://0177.0.0.1/", "http://0x7f.0.0.1/", "http://0x7F.1/",
    "http://127.0.0.0x1/", "http://00000177.1/", "http://127.0x1/", "http://0x0/", "http://00/",
    "http://①②⑦.⓪.⓪.①/", "http://127。0。0。1/", "http://ⓛocalhost/", "http://ℒocalhost/",
    "http://127.0.0.1\t/", "http://12\n7.0.0.1/", "HTTP://127.0.0.1", "  http://127.0.0.1/  ",
    "http://0x7f.0x0.0x0.0x1/", "http://0300.0250.1.1/", "http://3232235777/", "http://0xc0a80101/",
    "http://１２７．０．０．１/", "http://①⑥⑨。②⑤④。①⑥⑨。②⑤④/", "http://127.0.0.1:22/", "http://127.0.0.1:443/",
    # private, link-local, shared, metadata, reserved
    "http://10.0.0.1/", "http://10.255.255.255/", "http://172.16.0.1/", "http://172.31.255.255/",
    "http://192.168.1.1/", "http://169.254.0.1/", "http://169.254.169.254/latest/meta-data/",
    "http://2852039166/", "http://0xA9FEA9FE/", "http://[fd00:ec2::254]/",
    "http://100.100.100.200/", "http://100.64.0.1/", "http://192.0.0.192/", "http://168.63.129.16/",
    "http://198.18.0.1/", "http://192.0.2.1/", "http://198.51.100.1/", "http://203.0.113.1/",
    "http://192.88.99.1/", "http://224.0.0.1/", "http://239.255.255.250/", "http://240.0.0.1/",
    "http://255.255.255.255/", "http://metadata.google.internal/", "http://printer.local/",
    "http://[fe80::1]/", "http://[fc00::1]/", "http://[fec0::1]/", "http://[ff02::1]/",
    "http://[100::1]/", "http://[2001:db8::1]/", "http://[3fff::1]/",
    "http://169.254.170.2/", "http://169.254.169.253/", "http://169.254.169.254./",
    "http://[fd20:ce::254]/", "http://kubernetes.default.svc.cluster.local/", "http://a.internal/",
    "http://router.lan/", "http://x.home.arpa/", "http://wiki.intranet/",
    # an address within an address
    "http://[::ffff:0:127.0.0.1]/", "http://[::ffff:c0a8:101]/", "http://[64:ff9b::10.0.0.1]/",
    "http://[::ffff:127.0.0.1]/", "http://[::ffff:7f00:1]/", "http://[::ffff:169.254.169.254]/",
    "http://[0:0:0:0:0:ffff:10.0.0.1]/", "http://[::127.0.0.1]/", "http://[::7f00:1]/",
    "http://[2002:7f00:1::]/", "http://[2002:a9fe:a9fe::1]/", "http://[64:ff9b::127.0.0.1]/",
    "http://[64:ff9b::a9fe:a9fe]/", "http://[64:ff9b:1::1]/",
    "http://[2001:0:7f00:1::80ff:fffe]/", "http://[2001::1]/",
    # somebody else in front of it
    "http://example.com@127.0.0.1/", "http://example.com:80@127.0.0.1/",
    "http://user:pass@127.0.0.1/", "http://a@b@127.0.0.1/", "http://127.0.0.1#@example.com/",
    "http://127.0.0.1?@example.com/", "http://127.0.0.1/@example.com",
    "http://1.1.1.1 &@127.0.0.1# @3.3.3.3/",
    # names that lead there
    "http://loop.example/", "http://loop6.example/", "http://meta.example/",
    "http://mapped.example/", "http://both.example/", "http://zero.example/",
    "http://127.0.0.1.nip.example/", "http://LOOP.example./",
]
NO_URLS = [
    "file:///etc/passwd", "gopher://127.0.0.1:6379/_FLUSHALL", "ftp://127.0.0.1/",
    "dict://127.0.0.1:11211/stat", "data:text/html,x", "jar:http://127.0.0.1!/", "127.0.0.1",
    "//127.0.0.1/", "http:127.0.0.1", "http:/127.0.0.1/", "http:///127.0.0.1/",
    "http://%31%32%37.0.0.1/", "http://127.0.0.1%00.example/",
    "http://example.com\\@127.0.0.1/", "http://127.0.0.1\\@example.com/", "http://..127.0.0.1/",
    "http://127.0.0.1../", "http://[::1].example.com/", "http://[fe80::1%eth0]/",
    "http://[fe80::1%25eth0]/", "http://127.0.0.1:80:80/", "http://127.0.0.1;example.com/",
    "http://127.0.0.1,example.com/", "http://loc\u00adalhost/", "http://localhost\u200b/",
    "http://127.0.0.1:0/", "http://loca%6chost/", "http://127.0.0.1%2f@example.com@/",
    "http://127.0.0.1%0d%0aHost:x/", "http://[::1%25lo]/", "http://[::ffff:0x7f.1]/",
    "http://127.0.0.1:99999/", "unix:///var/run/docker.sock", "javascript:fetch('//127.0.0.1')",
    "http://[::ffff:127.0.0.1/", "http://xn--/", "http://[::1]@", "http://[::1]@/",
]

# What looks like one of those and is not.
PUBLIC = [
    "http://8.8.8.8/", "http://134744072/", "http://0x08080808/", "http://010.010.010.010/",
    "http://172.32.0.1/", "http://100.128.0.1/", "http://11.0.0.1/", "http://128.0.0.1/",
    "http://[2606:4700::1111]/", "http://[::ffff:8.8.8.8]/", "http://localhost.example/",
    "http://local.example/", "http://127.0.0.1.example/", "http://internal.example/",
    "http://user@example.org/", "http://bücher.example/", "http://xn--bcher-kva.example/",
    "https://example.org:8443/", "http://EXAMPLE.org./",
]
# fmt: on


def answer(host: str, port: int, family: int) -> list[tuple[Any, ...]]:
    """What that name server says; for other names, what the machine's own does."""
    addresses = NAMES.get(host.rstrip(".").lower())
    if addresses is None:
        return socket.getaddrinfo(host, port, family, socket.SOCK_STREAM)
    return [socket.getaddrinfo(one, port, type=socket.SOCK_STREAM)[0] for one in addresses]
