from pack.side import *


def go():
    return step()
