"""Reads a trace in Perfetto's format (perfetto.dev, "TracePacket"), as its viewer would: packets in the order of time, names
by their numbers, slices from their begin to their end."""

import collections
import struct

SLICE_BEGIN, SLICE_END, INSTANT, COUNTER = 1, 2, 3, 4


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 0x7f) << shift
        shift += 7
        at += 1
        if data[at - 1] < 0x80:
            return value, at


def fields(data):
    """The fields of a message: numbers, and bytes of those with a length."""
    found, at = collections.defaultdict(list), 0
    while at < len(data):
        tag, at = varint(data, at)
        if tag & 7 == 0:
            value, at = varint(data, at)
        elif tag & 7 == 1:
            value, at = data[at:at + 8], at + 8
        else:
            assert tag & 7 == 2, tag
            size, at = varint(data, at)
            value, at = data[at:at + size], at + size
            assert len(value) == size
        found[tag >> 3].append(value)
    return found


class Slice:
    def __init__(self, track, begin, name, category, args, flows):
        self.track, self.begin, self.end, self.name, self.category, self.args, self.flows = \
            track, begin, begin, name, category, args, flows

    def key(self):
        return (*self.track, self.begin, self.end - self.begin, self.name, self.category, tuple(sorted(self.args.items())))


class PfTrace:
    def __init__(self, data):
        self.names, self.tracks, self.packets = {}, {}, []
        self.slices, self.instants, self.counts = [], [], []
        for packet in fields(data)[1]:
            self.take(fields(packet))
        assert all(field == 1 for field in fields(data))
        self.replay()

    def take(self, packet):
        assert packet[10] == [1]
        if packet[60]:
            track = fields(packet[60][0])
            process = fields(track[3][0]) if track[3] else None
            name = (process[6] if process else track[2])[0].decode()
            parent = self.tracks[track[5][0]][-1] if track[5] else None
            assert track[1][0] not in self.tracks
            self.tracks[track[1][0]] = (parent, name)
            return
        flags, = packet[13]
        if flags & 1:
            self.names.clear()
        for interned in packet[12]:
            for kind, entries in fields(interned).items():
                for entry in map(fields, entries):
                    self.names[kind, entry[1][0]] = entry[2][0].decode()
        event = fields(packet[11][0])
        kind, track = event[9][0], event[11][0]
        args = {}
        for arg in map(fields, event[4]):
            value = arg[3][0] if arg[3] else struct.unpack("<d", arg[5][0])[0] if arg[5] else self.names[29, arg[17][0]]
            args[self.names[3, arg[1][0]]] = value
        name = self.names[2, event[10][0]] if event[10] else None
        category = self.names[1, event[3][0]] if event[3] else None
        value = struct.unpack("<d", event[44][0])[0] if event[44] else None
        flows = [(flow, ends) for number, ends in ((47, False), (48, True)) for flow in event[number]]
        self.packets.append((packet[8][0], kind, self.tracks[track], track, name, category, args, value, flows))

    def replay(self):
        opened = collections.defaultdict(list)
        for ns, kind, names, track, name, category, args, value, flows in sorted(self.packets, key=lambda p: p[0]):
            if kind == SLICE_END:
                opened[track].pop().end = ns
            elif kind == COUNTER:
                self.counts.append((*names, ns, value))
            elif names == (None, "marks"):
                self.instants.append((ns, name, category, args))
            else:
                self.slices.append(Slice(names, ns, name, category, args, flows))
                if kind == SLICE_BEGIN:
                    opened[track].append(self.slices[-1])
        assert not any(opened.values())
