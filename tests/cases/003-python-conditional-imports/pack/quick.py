def fwd():
    return None
