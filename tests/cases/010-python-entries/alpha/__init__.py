from .interface import attend
