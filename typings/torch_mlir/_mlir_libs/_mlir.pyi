# What this project uses of the bindings' native module.

class _Globals:
    def append_dialect_search_prefix(self, module_name: str) -> None: ...

globals: _Globals
