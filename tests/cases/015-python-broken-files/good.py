from broken import thing


def use():
    thing()
