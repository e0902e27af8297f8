from .core import work as labour
from pack.deep import *
