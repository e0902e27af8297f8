def thing():
    return None


def thing(:
