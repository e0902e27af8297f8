import functools


@functools.lru_cache(
    maxsize=None,
)
def   spaced(text):
    return text


async def later(): return spaced("é") + spaced("x")


class  Wide:
    def method(self, a,
               b): return (
            self
            .other(a)
        )

    def other(self, a): return "ü", spaced(a)
