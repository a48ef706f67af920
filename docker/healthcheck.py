"""Asks the site of this container for /healthz, by a host name that the site accepts."""

from __future__ import annotations

import http.client
import os
import sys

PORT = 8000


def accepted_host() -> str:
    # A site that serves only its public name refuses a request to 127.0.0.1.
    named = os.environ.get("ALLOWED_HOSTS", "").split(",")[0].strip()
    return "localhost" if named in {"", "*"} else named.lstrip(".")


def main(port: int = PORT) -> int:
    site = http.client.HTTPConnection("127.0.0.1", port, timeout=4)
    try:
        site.request("GET", "/healthz", headers={"Host": accepted_host()})
        status = site.getresponse().status
    except (OSError, http.client.HTTPException) as error:
        # The engine keeps the last few of these lines with the container.
        sys.stderr.write(f"/healthz did not answer: {error}\n")
        return 1
    sys.stderr.write(f"/healthz answered {status}\n")
    return 0 if status == 200 else 1


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:2])))
