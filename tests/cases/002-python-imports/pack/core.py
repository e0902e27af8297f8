import math as m

from . import side
from .deep.bottom import dig as delve


def work():
    side.step()
    delve()
    return m.sqrt(4)
