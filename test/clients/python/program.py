"""What the Python client programs share: commands in, events out, the records to send. See ../README.md."""
import hashlib
import json
import sys
import threading
import time

FILLER_STEP = 131
FILLER_SPAN = 4096
_filler = b""
_output = threading.Lock()

PATIENCE = 60.0
"""For how many seconds commits may fail before a member gives up: longer than a broker needs to come back."""


def fill(length):
    """Printable bytes from a fixed linear congruential sequence: the same in every family's program."""
    global _filler
    if len(_filler) < length:
        x, out = 1, bytearray(length)
        for i in range(length):
            x = (x * 1664525 + 1013904223) & 0xFFFFFFFF
            out[i] = 97 + (x >> 28)
        _filler = bytes(out)
    return _filler


def _hash(data):
    return hashlib.sha1(data).hexdigest()[:16]


def headers_hash(headers):
    if not headers:
        return ""
    return _hash(b"".join(name.encode() + b"\0" + (value or b"") + b"\0" for name, value in headers))


class Record:
    """One record to send."""

    def __init__(self, command, i):
        keys = command.get("keys", 10)
        size = command.get("size", 100)
        count = command.get("headers", 0)
        self.topic = command.get("topic")
        self.sequence = i
        self.producer = command.get("producer", "p")
        self.key = None if keys == 0 else f"k{i % keys}\u00e9"
        prefix = f"{self.producer}|{self.key or ''}|{i}|".encode()
        at = i * FILLER_STEP % FILLER_SPAN
        self.value = prefix + fill(size + FILLER_SPAN)[at : at + max(0, size - len(prefix))]
        self.headers = [(f"h{j}", b"" if j == count - 1 and j > 0 else f"v{i}-{j}".encode()) for j in range(count)]
        self.partition = i % command["partitions"] if "partitions" in command else None
        self.timestamp = command["timestamp"] + i if "timestamp" in command else None
        self.key_bytes = None if self.key is None else self.key.encode()

    def origin(self):
        return {"topic": self.topic, "key": self.key, "producer": self.producer, "sequence": self.sequence}

    def fields(self):
        return {
            **self.origin(),
            "valueHash": _hash(self.value),
            "headersHash": headers_hash(self.headers),
            "timestamp": self.timestamp,
        }


def records(command):
    """The records of a produce command, paced if it has a rate."""
    start, rate = command.get("start", 0), command.get("rate", 0)
    began = time.monotonic()
    for i in range(start, start + command.get("count", 1)):
        if command.get("stopped"):
            return
        if rate:
            time.sleep(max(0.0, began + (i - start) / rate - time.monotonic()))
        yield Record(command, i)


def in_transactions(command, emit, send, begin, end):
    """Calls `send(record, transaction)` for each record, in transactions between `begin()` and `end(abort)`; some are aborted."""
    each, abort_every = command.get("perTransaction", command.get("count", 1)), command.get("abortEvery", 0)
    number, open_count, left = 0, 0, command.get("count", 1)
    for record in records(command):
        if open_count == 0:
            number += 1
            begin()
        name = f"{command['transactionalId']}-{number}"
        send(record, name)
        open_count, left = open_count + 1, left - 1
        if open_count < each and left > 0:
            continue
        open_count = 0
        abort = abort_every > 0 and number % abort_every == 0
        end(abort)
        outcome = "aborted" if abort else "committed"
        emit("transaction", producer=command.get("producer", "p"), transaction=name, outcome=outcome)


def delivered(topic, partition, offset, key, value, headers, timestamp):
    """The fields of a delivered record."""
    parts = value[:200].decode(errors="replace").split("|", 3) if value is not None else []
    return {
        "topic": topic,
        "partition": partition,
        "offset": offset,
        "key": None if key is None else key.decode(),
        "producer": parts[0] if len(parts) > 3 else None,
        "sequence": int(parts[2]) if len(parts) > 3 else None,
        "valueHash": None if value is None else _hash(value),
        "headersHash": headers_hash(headers),
        "timestamp": timestamp,
    }


class Emitter:
    """Writes the events of one command."""

    def __init__(self, command):
        self.id = command["id"]
        self.count = 0

    def __call__(self, event, **fields):
        if event in ("acknowledged", "delivered"):
            self.count += 1
        line = json.dumps({"id": self.id, "event": event, **fields, "at": int(time.time() * 1000)})
        with _output:
            sys.stdout.write(line + "\n")
            sys.stdout.flush()


class Member:
    """Events and positions of one group member."""

    def __init__(self, command, emit):
        self.emit = emit
        self.name = {"member": command.get("member", command["id"]), "group": command["group"]}
        self.positions = {}
        self.held = set()
        self.every, self.told = command.get("positionsMs", 0) / 1000, time.monotonic()
        self.failing_since = None

    def partitions(self, event, partitions):
        if event == "assigned":
            self.held |= {tuple(one) for one in partitions}
        else:
            for one in partitions:
                self.positions.pop(tuple(one), None)
                self.held.discard(tuple(one))
        self.emit(event, **self.name, partitions=sorted(partitions))

    def delivered(self, fields):
        self.emit("delivered", **fields, **self.name)

    def done(self, fields):
        place = {name: fields[name] for name in ("topic", "partition", "offset")}
        self.emit("done", **place, **self.name)
        self.positions[(place["topic"], place["partition"])] = place["offset"] + 1

    def to_tell(self):
        """The partitions whose position is to be told now."""
        if not self.every or time.monotonic() - self.told < self.every:
            return []
        self.told = time.monotonic()
        return sorted(self.held)

    def position(self, topic, partition, position, end=None, lag=None):
        """What the client itself says about where it stands; None where it does not say."""
        told = {"position": position, "end": end, "lag": lag}
        known = {name: -1 if one is None or one < 0 else one for name, one in told.items()}
        self.emit("position", **self.name, topic=topic, partition=partition, **known)

    def take(self):
        """What there is to commit: {(topic, partition): next offset}."""
        offsets, self.positions = self.positions, {}
        return offsets

    def put_back(self, offsets):
        """A commit that failed for now: what is still held is committed with the next one."""
        for place, offset in offsets.items():
            if place in self.held:
                self.positions.setdefault(place, offset)

    def not_committed(self, offsets, error, fields):
        """A commit failed that may go well later. Raises when none has gone well for long."""
        self.emit("error", **fields)
        self.put_back(offsets)
        if self.failing_since is None:
            self.failing_since = time.monotonic()
        if time.monotonic() - self.failing_since > PATIENCE:
            raise error

    def committed(self, offsets):
        self.failing_since = None
        for (topic, partition), offset in offsets.items():
            self.emit("committed", **self.name, topic=topic, partition=partition, offset=offset)


def serve(handlers, error_fields):
    """Runs commands, each in a thread, until the input ends. Handlers watch command["stopped"]."""
    running, threads = {}, []

    def execute(command):
        emit, ok = Emitter(command), True
        try:
            handlers[command["cmd"]](command, emit)
        except Exception as error:  # whatever the library throws is the result
            ok = False
            emit("error", **error_fields(error))
        running.pop(command["id"], None)
        emit("end", ok=ok, count=emit.count)

    for line in sys.argv[1:] or sys.stdin:
        if not line.strip():
            continue
        command = json.loads(line)
        if command["cmd"] == "stop":
            if command["target"] in running:
                running[command["target"]]["stopped"] = True
            continue
        running[command["id"]] = command
        thread = threading.Thread(target=execute, args=(command,))
        threads.append(thread)
        thread.start()
    for thread in threads:
        thread.join()
