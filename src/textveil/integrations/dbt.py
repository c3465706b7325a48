"""dbt with DuckDB: a plugin that gives each connection the functions of textveil.

In: the plugin's configuration in a profile of dbt. Out: `textveil_protect` and others in models.
Not here: what the functions do (`duckdb`, `sql`), and other engines (docs/do/integrations/sql.md).
"""

from typing import Any

from textveil.config.extras import explain_missing
from textveil.errors import ConfigError
from textveil.integrations.duckdb import register
from textveil.session import SessionStore

with explain_missing():
    from dbt.adapters.duckdb.plugins import BasePlugin

__all__ = ["Plugin"]

OPTIONS = "protector", "privatizer", "store", "session"
"""Fields of the configuration."""


class Plugin(BasePlugin):  # type: ignore[misc]
    """Plugin of dbt-duckdb; a profile names this module.

    Its configuration may have `protector` and `privatizer`, names of profiles of textveil, and
    `store` and `session` (anna/lease) for equal placeholders in all rows.
    """

    def initialize(self, plugin_config: dict[str, Any]) -> None:
        """Reads the configuration.

        Raises:
            ConfigError: a field is unknown, or one of store and session is missing.
        """
        if extra_names := sorted(set(plugin_config) - set(OPTIONS)):
            raise ConfigError(
                f"the plugin has no field {', '.join(extra_names)}; it has {', '.join(OPTIONS)}"
            )
        if ("store" in plugin_config) != ("session" in plugin_config):
            raise ConfigError("store goes with session: give both or neither")
        self._options = plugin_config

    def configure_connection(self, conn: Any) -> None:
        """Adds the functions to a connection."""
        options = dict(self._options)
        store, name = options.pop("store", None), options.pop("session", "")
        subject, _, session = name.partition("/")
        if store is not None:
            options["session"] = SessionStore(store).open(subject, session or "default")
        register(conn, **options)
