"""autohet from Python: export a model, prepare data.

Nothing is imported until it is used: `import autohet` needs only Python itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._export import ExportedModel as ExportedModel
    from ._export import export as export
    from ._export_errors import ExportError as ExportError

__version__ = "0.1.0"
__all__ = ["ExportError", "ExportedModel", "export", "__version__"]


def __getattr__(name: str) -> Any:
    if name in ("export", "ExportedModel", "ExportError"):
        from . import _export

        return getattr(_export, name)
    raise AttributeError(f"module 'autohet' has no attribute '{name}'")
