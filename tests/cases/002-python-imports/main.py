import pack
import pack.side
from pack import labour
from pack.core import work, absent


def start():
    pack.labour()
    pack.side.step()
    labour()
    work()
    pack.dig()
    absent()
    pack.nothing()
