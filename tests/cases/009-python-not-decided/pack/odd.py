class Holder:
    def size(self):
        return 1


def run(x, callback, items, **options):
    callback(x)
    x.size()
    x.contiguous()
    items[0](x)
    options["f"](x)
    for item in items:
        item(x)
    undefined(x)
    run()
    (lambda y: y)(x)
    q, k = items
    q(x)
    return x.size
