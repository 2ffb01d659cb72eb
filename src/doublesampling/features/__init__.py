"""Features: from records and tables to the context vector."""

from doublesampling.features.features import ContextLike, ContextsLike, Features, read_features
from doublesampling.features.fields import Field
from doublesampling.features.rows import is_record, is_records

__all__ = ["ContextLike", "ContextsLike", "Features", "Field", "is_record", "is_records", "read_features"]
