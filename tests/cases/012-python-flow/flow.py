def first(x):
    return x


def second(x):
    return x


def rebound(x):
    f = first
    f(x)
    f = second
    return f(x)


def early(x, flag):
    f = first
    if flag:
        f = second
        return f(x)
    return f(x)


def either(x, flag):
    if flag:
        f = first
    else:
        f = second
    return f(x)


def never(x):
    f = first
    if x is None:
        raise ValueError
    try:
        f = second
    except ValueError:
        f = first
    finally:
        f(x)
    return f(x)


def chosen(x):
    f = first
    match x:
        case 1:
            f = second
        case [f]:
            f(x)
    return [f(f) for f in (second,)]


def twice(x):
    return x


if first:

    def twice(x):
        return first(x)


def uses(x):
    return twice(x)
