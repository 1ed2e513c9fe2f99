"""The motor commands of testbed: lines of its log, with the monotonic clock."""


def motors(log, part=None):
    """(seconds, kind) of every motor command so far, or of those of one part."""
    try:
        with open(log) as lines:
            words = [line.split() for line in lines.read().splitlines()]
    except FileNotFoundError:
        return []
    return [(int(line[0]) / 1e9, line[1]) for line in words if len(line) >= 3 and part in (None, line[2])]


def moves(log, part=None):
    """When something was told to move."""
    return [at for at, kind in motors(log, part) if kind in ("start", "step")]


def steps_since(log, begun, part=None):
    """Whether there is a step that is newer than this."""
    return any(at > begun and kind == "step" for at, kind in motors(log, part))
