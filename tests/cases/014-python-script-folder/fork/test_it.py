from interface import attend


def check():
    attend()
