"""Store backends: SQLite and PostgreSQL behind one contract, with migrations, backups and restores."""

from doublesampling.live.stores.contract import Store
from doublesampling.live.stores.urls import close_stores, open_store

__all__ = ["Store", "close_stores", "open_store"]
