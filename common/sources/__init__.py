"""Reading real records, one batch at a time.

Only `dpntk.embed` and `dpntk.evaluate` may import this package; an import contract keeps it out of
reach of the release and the generator.
"""

from .base import Batch, Source, require_same_data
from .images.decoding.form import require_public_form
from .opening import InMemoryData, open_source, place_of
from .options import SourceOptions
from .tables.encoded import encoded_by
from .tables.privacy_units import with_bounded_units

__all__ = [
    "Batch",
    "InMemoryData",
    "Source",
    "SourceOptions",
    "encoded_by",
    "open_source",
    "place_of",
    "require_public_form",
    "require_same_data",
    "with_bounded_units",
]
