"""Names of databases: what they mean, and how messages show them."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import unquote

from prx_engine.errors import StoreError
from prx_engine.text import shown_place

_POSTGRESQL_SCHEMES: Final = ("postgresql://", "postgres://")
_HOST: Final = r"(?:\[[0-9A-Za-z:.%]*\]|[^\[\]:@/?,]*)(?::\d*)?"
_URL: Final = re.compile(
    r"(?P<scheme>[^:/]+)://(?:(?P<user>[^:@/]*)(?P<password>:[^@/]*)?@)?"
    rf"(?P<place>{_HOST}(?:,{_HOST})*(?:/[^?@]*)?)(?P<query>\?.*)?",
    re.DOTALL,
)
"""Splits a URL where libpq does, but has no @ or / where a password that was not quoted would put them."""

_ALMOST: Final = re.compile(r"postgres(ql)?:|(.*\s)?password\s*=", re.DOTALL | re.IGNORECASE)
_PARAMETER: Final = re.compile("([^?&=]+)(=[^&]*)?")
_SECRETS: Final = ("pass", "key", "secret")


def is_postgresql(url: str) -> bool:
    """Tell whether a database name means a PostgreSQL server."""
    return url.startswith(_POSTGRESQL_SCHEMES)


def is_almost_postgresql(name: str) -> bool:
    """Tell whether a name that is no URL was meant for PostgreSQL, and may have a password in it."""
    return "://" not in name and _ALMOST.match(name) is not None


def without_password(url: str) -> str:
    """Return a database name as messages may show it; what might be a password is left out."""
    if "://" not in url or url.startswith("sqlite:///"):
        return url
    parts = _URL.fullmatch(url)
    query = "" if parts is None else parts["query"] or ""
    if parts is None or "@" in query:
        scheme, _, rest = url.partition("://")
        # A question mark may begin the parameters or stand in the password.
        place = "@" + rest.rpartition("@")[2] if "@" in rest and "?" not in rest else ""
        return f"{scheme}://***{place}"
    user = "" if parts["user"] is None else parts["user"] + (":***" if parts["password"] else "") + "@"
    return f"{parts['scheme']}://{user}{parts['place']}{_PARAMETER.sub(_without_secret, query)}"


def _without_secret(parameter: re.Match[str]) -> str:
    name, value = parameter[1], parameter[2]
    if value is None:
        return "***"
    return f"{name}=***" if any(word in unquote(name).lower() for word in _SECRETS) else parameter[0]


def libpq_url(url: str) -> str:
    """Return the URL of a PostgreSQL database as its driver takes it.

    Raises:
        StoreError: if it is malformed; what the driver says of that may have a password in it.
    """
    if _URL.fullmatch(url) is None or not _is_understood(url):
        raise StoreError(
            f"database {shown_place(without_password(url))}: malformed; write it as"
            " postgresql://USER:PASSWORD@HOST:PORT/NAME, with special characters as %XX"
        )
    return "postgresql://" + url.split("://", 1)[1]


def _is_understood(url: str) -> bool:
    try:
        from psycopg import ProgrammingError
        from psycopg.conninfo import conninfo_to_dict
    except ImportError:
        return True
    try:
        conninfo_to_dict(url)
    except ProgrammingError:
        return False
    return True
