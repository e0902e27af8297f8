from .public import attend
