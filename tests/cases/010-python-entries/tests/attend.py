def attend():
    """Not a definition:

def attend():
    """
