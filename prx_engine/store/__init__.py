"""The database: tables, transactions, and the totals that make every figure cheap to read."""

from prx_engine.store.database import Store, default_database
from prx_engine.store.locks import Lock
from prx_engine.store.urls import is_postgresql, without_password
from prx_engine.store.watch import ChangeWatch

__all__ = ["ChangeWatch", "Lock", "Store", "default_database", "is_postgresql", "without_password"]
