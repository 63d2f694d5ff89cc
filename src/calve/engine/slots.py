"""The free hands of a worker. Whoever may need some reserves them first, so that no two count on the same one."""

from threading import Lock, local


class Slots:
    """Counts free hands."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._free = size
        self._lock = Lock()

    @property
    def free(self) -> int:
        """How many are free and not reserved."""
        return self._free

    def reserve(self, at_most: int) -> int:
        """Reserve some, as many as there are; return how many."""
        with self._lock:
            taken = max(0, min(at_most, self._free))
            self._free -= taken
        return taken

    def give(self, count: int) -> bool:
        """Give some back; tell whether that ends a shortage."""
        with self._lock:
            was_none = self._free == 0
            self._free += count
        return was_none and count > 0


class Share(local):
    """What one thread of a worker may count on."""

    own = 0
    """1, if it carries out steps itself: it can go on with the next one."""
    reserved = 0
    """Hands of others that it has reserved for the turn that it takes."""
