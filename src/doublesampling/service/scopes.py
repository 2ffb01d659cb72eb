"""Scopes: what a key may do. A role is a named set of scopes."""

from doublesampling import checks
from doublesampling.errors import SettingError

SCOPES = {
    "ask": "ask for decisions, and list one's own pending units",
    "tell": "tell outcomes",
    "amend": "amend or withdraw outcomes, void decisions",
    "read": "see results, exports, the audit trail",
    "admin": "create experiments, pause, resume, change arms, add history, read the access log",
}
ROLES = {
    "reader": frozenset({"read"}),
    "writer": frozenset({"ask", "tell"}),
    "admin": frozenset(SCOPES),
}


def check_scopes(role: str | None, scopes: str | None) -> tuple[str, frozenset[str]]:
    """Return the role and the scopes of a new key, from ``--role`` or from ``--scopes``.

    >>> check_scopes("writer", None)[0], sorted(check_scopes(None, "tell, amend")[1])
    ('writer', ['amend', 'tell'])
    """
    if (role is None) == (scopes is None):
        raise SettingError("A key needs either a role or scopes. Write --role writer, or --scopes ask,tell.")
    if role is not None:
        name = str(checks.one_of("role", role, tuple(ROLES)))
        return name, ROLES[name]
    wanted = frozenset(part.strip() for part in str(scopes).split(",") if part.strip())
    if not wanted or not wanted <= SCOPES.keys():
        raise SettingError(f"scopes must be some of {', '.join(SCOPES)}, separated by commas, got {scopes!r}.")
    if "admin" in wanted and wanted != SCOPES.keys():
        raise SettingError("The scope admin includes all others. Use --role admin, or leave admin out.")
    return next((name for name, usual in ROLES.items() if usual == wanted), "custom"), wanted


def format_scopes(scopes: frozenset[str]) -> str:
    """Return scopes as text, in a fixed order."""
    return ",".join(scope for scope in SCOPES if scope in scopes)
