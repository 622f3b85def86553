/* Cuts frames from segments that arrive in order: the fast path of reassembly and framing.

   A connection is tracked here only while it is ordinary: established, nothing missing, both streams in sync. A
   segment that does anything but continue its stream is declined before any of it is handled; then the connection's
   state goes back to `Flow`, `Connection` and `Stream`, which would be in this state had they handled its segments.
   `in_order.py` is the same module without a C compiler: it tracks no connection.

       state --track--> slot --cut: rows of segments--> frames, each with its slot, side, packet and time
                         `--untrack--> state

   Source of sequence numbers: RFC 9293. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

typedef const uint8_t *Bytes;

enum { FAILED = -1, DECLINED = 0, DONE = 1 }; /* an exception is set | left to Python | handled */
enum { FIN = 1, SYN = 2, RST = 4, ACK = 16 };
static const int64_t WINDOW = INT64_C(0xFFFF0000); /* bits of the flags, see `segment_rows` */
enum { KEY = 36, END = 18 };                                   /* bytes of a key, and of each of its endpoints */
enum { PACKET, TIME, SEQ, ACKED, PAYLOAD, CAPTURED, SIZE, FLAGS, NUMBERS }; /* columns of a row of segments */
enum { PREFIX = 4, MIN_REQUEST = 8, FIRST_STORED = 512, FIRST_ROOM = 1 << 16, MAX_BEHIND = 32 };
enum { FULL = -2, UNTRACKED = -1 };

#define NO_TIME INT64_MIN

/* The packet of the bytes up to `end`, a position of the stream, and its time. */
typedef struct {
    int64_t end, packet, time_ns;
} Mark;

/* One direction. position: of the next expected byte; next_seq: its sequence number. acked, peer_ack: as in `Flow`.
   recent, stored: the last delivered bytes, as in `DeliveredBytes`, with room for `recent_room`. framed: the position of
   the next frame; held: bytes from there on, the size of the frame in `prefix` and the rest in `frame`, which has room
   for `room` bytes. */
typedef struct {
    uint8_t key[KEY], prefix[PREFIX];
    uint32_t next_seq;
    int least;
    int64_t position, acked, peer_ack, delivered, framed, held, size, room, stored, recent_room;
    PyObject *frame;
    uint8_t *recent;
    Mark *marks;
    Py_ssize_t mark_count, mark_room;
} Side;

typedef struct {
    Side sides[2];
    int64_t last_packet, last_ns;
} Connection;

typedef struct {
    PyObject_HEAD
    int64_t max_frame, limit, max_window;
    uint64_t seed;
    Connection **connections; /* by slot; NULL for a free one */
    Py_ssize_t room;
    int32_t *free_slots;
    Py_ssize_t free_count;
    int32_t *table; /* a hash table: 2 * slot + side + 1 of a key, 0 for none */
    uint64_t mask;
    Py_ssize_t used;
    int64_t *out; /* slot, side, packet and time of each frame */
    Py_ssize_t out_count, out_room;
} Frames;

static inline int64_t int64_at(Bytes p)
{
    int64_t value;
    memcpy(&value, p, 8);
    return value;
}

static inline int64_t size_at(Bytes p) { return (int32_t)((uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3]); }

/* -- keys to sides: open addressing. The seed is that of Python's hashes, so that a capture cannot choose keys that collide. */

static inline uint64_t hash_of(const Frames *self, Bytes key)
{
    uint64_t hash = self->seed, word;
    for (int at = 0; at < KEY - 4; at += 8) {
        memcpy(&word, key + at, 8);
        hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
        hash ^= hash >> 29;
    }
    uint32_t last;
    memcpy(&last, key + KEY - 4, 4);
    hash = (hash ^ last ^ self->seed << 7) * 0xD6E8FEB86659FD93u;
    return hash ^ hash >> 32;
}

static inline Side *side_at(const Frames *self, int32_t entry) { return &self->connections[(entry - 1) >> 1]->sides[(entry - 1) & 1]; }

/* Find the place of a key, or the free one where it would be. */
static inline uint64_t place_of(const Frames *self, Bytes key)
{
    uint64_t at = hash_of(self, key) & self->mask;
    while (self->table[at] && memcmp(side_at(self, self->table[at])->key, key, KEY))
        at = (at + 1) & self->mask;
    return at;
}

static int more_places(Frames *self)
{
    uint64_t size = self->mask ? 2 * (self->mask + 1) : 64;
    int32_t *before = self->table, *table = PyMem_Calloc(size, sizeof *table);
    if (!table)
        return FAILED;
    uint64_t count = self->mask ? self->mask + 1 : 0;
    self->table = table;
    self->mask = size - 1;
    for (uint64_t at = 0; at < count; at++)
        if (before[at])
            table[place_of(self, side_at(self, before[at])->key)] = before[at];
    PyMem_Free(before);
    return DONE;
}

static void remove_key(Frames *self, Bytes key)
{
    uint64_t hole = place_of(self, key), at = hole;
    if (!self->table[hole])
        return;
    self->used--;
    for (;;) { /* move back what would not be found behind an empty place */
        self->table[hole] = 0;
        uint64_t home;
        do {
            at = (at + 1) & self->mask;
            if (!self->table[at])
                return;
            home = hash_of(self, side_at(self, self->table[at])->key) & self->mask;
        } while (((at - home) & self->mask) < ((at - hole) & self->mask));
        self->table[hole] = self->table[at];
        hole = at;
    }
}

/* -- delivered bytes, as `DeliveredBytes` keeps them */

/* Make room for `size` more bytes, at most twice the limit in all. */
static int more_recent(Side *side, int64_t size)
{
    int64_t room = side->recent_room ? 2 * side->recent_room : FIRST_STORED;
    while (room < side->stored + size)
        room *= 2;
    uint8_t *recent = PyMem_Realloc(side->recent, (size_t)room);
    if (!recent)
        return FAILED;
    side->recent = recent;
    side->recent_room = room;
    return DONE;
}

static int store_recent(Side *side, Bytes p, int64_t size)
{
    if (!size)
        return DONE;
    if (side->stored + size > side->recent_room && more_recent(side, size) != DONE)
        return FAILED;
    memcpy(side->recent + side->stored, p, (size_t)size);
    side->stored += size;
    return DONE;
}

static int deliver(Side *side, Bytes p, int64_t size, int64_t limit)
{
    side->delivered += size;
    if (size >= limit) {
        side->stored = 0;
        return store_recent(side, p + size - limit, limit);
    }
    if (side->stored + size > 2 * limit) {
        int64_t kept = limit - size;
        memmove(side->recent, side->recent + side->stored - kept, (size_t)kept);
        side->stored = kept;
    }
    return store_recent(side, p, size);
}

/* -- frames */

static inline int is_valid(const Frames *self, const Side *side, int64_t size) { return size >= side->least && size <= self->max_frame; }

/* Whether all frames that begin in these bytes have a valid size. */
static int are_valid(const Frames *self, const Side *side, Bytes p, int64_t size)
{
    int64_t at = 0;
    if (side->held) {
        int64_t frame = side->size, held = side->held;
        if (held < PREFIX) {
            uint8_t prefix[PREFIX];
            if (held + size < PREFIX)
                return 1;
            memcpy(prefix, side->prefix, (size_t)held);
            memcpy(prefix + held, p, (size_t)(PREFIX - held));
            frame = size_at(prefix);
            if (!is_valid(self, side, frame))
                return 0;
        }
        at = PREFIX + frame - held;
    }
    while (size - at >= PREFIX) {
        int64_t frame = size_at(p + at);
        if (!is_valid(self, side, frame))
            return 0;
        at += PREFIX + frame;
    }
    return 1;
}

static int add_mark(Side *side, int64_t end, int64_t packet, int64_t time_ns)
{
    if (side->mark_count == side->mark_room) {
        Py_ssize_t room = side->mark_room ? 2 * side->mark_room : 8;
        Mark *marks = PyMem_Realloc(side->marks, (size_t)room * sizeof *marks);
        if (!marks)
            return FAILED;
        side->marks = marks;
        side->mark_room = room;
    }
    side->marks[side->mark_count++] = (Mark){end, packet, time_ns};
    return DONE;
}

/* Append bytes to the incomplete frame; the room grows with the bytes that arrived, not with the size that it claims. */
static int add_bytes(Side *side, Bytes p, int64_t size)
{
    int64_t filled = side->held - PREFIX;
    if (filled + size > side->room) {
        int64_t room = 2 * (filled + size);
        room = room < FIRST_ROOM ? FIRST_ROOM : room;
        room = room > side->size ? side->size : room;
        if (!side->frame)
            side->frame = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)room);
        else
            _PyBytes_Resize(&side->frame, (Py_ssize_t)room);
        if (!side->frame)
            return FAILED;
        side->room = room;
    }
    memcpy(PyBytes_AS_STRING(side->frame) + filled, p, (size_t)size);
    side->held += size;
    return DONE;
}

static int emit(Frames *self, PyObject *frames, PyObject *frame, int32_t entry, int64_t packet, int64_t time_ns)
{
    if (!frame)
        return FAILED;
    int made = PyList_Append(frames, frame);
    Py_DECREF(frame);
    if (made < 0)
        return FAILED;
    if (self->out_count + 4 > self->out_room) {
        Py_ssize_t room = self->out_room ? 2 * self->out_room : 1024;
        int64_t *out = PyMem_Realloc(self->out, (size_t)room * sizeof *out);
        if (!out)
            return FAILED;
        self->out = out;
        self->out_room = room;
    }
    int64_t *row = self->out + self->out_count;
    row[0] = (entry - 1) >> 1;
    row[1] = (entry - 1) & 1;
    row[2] = packet;
    row[3] = time_ns;
    self->out_count += 4;
    return DONE;
}

/* Add bytes to the incomplete frame of a side; returns how many, FAILED for an exception. */
static int64_t complete(Side *side, Bytes p, int64_t size)
{
    int64_t before = size;
    if (side->held < PREFIX) {
        int64_t more = PREFIX - side->held < size ? PREFIX - side->held : size;
        memcpy(side->prefix + side->held, p, (size_t)more);
        side->held += more;
        p += more;
        size -= more;
        if (side->held < PREFIX)
            return before;
        side->size = size_at(side->prefix);
        side->room = 0;
    }
    int64_t lacking = PREFIX + side->size - side->held, more = lacking < size ? lacking : size;
    if (more && add_bytes(side, p, more) != DONE)
        return FAILED;
    return before - size + more;
}

/* Cut the frames that end in these bytes; `are_valid` is true of them. */
static int cut_frames(Frames *self, Side *side, int32_t entry, Bytes p, int64_t size, int64_t packet, int64_t time_ns, PyObject *frames)
{
    while (size) {
        int64_t frame = !side->held && size >= PREFIX ? size_at(p) : INT64_MAX - PREFIX;
        if (frame <= size - PREFIX) {
            if (emit(self, frames, PyBytes_FromStringAndSize((const char *)p + PREFIX, (Py_ssize_t)frame), entry, packet, time_ns) != DONE)
                return FAILED;
            side->framed += PREFIX + frame;
            p += PREFIX + frame;
            size -= PREFIX + frame;
            continue;
        }
        int64_t used = complete(side, p, size);
        if (used < 0)
            return FAILED;
        p += used;
        size -= used;
        if (side->held < PREFIX || side->held < PREFIX + side->size)
            return add_mark(side, side->framed + side->held, packet, time_ns);
        PyObject *whole = side->frame; /* its room is its size: all bytes arrived */
        side->frame = NULL;
        side->framed += PREFIX + side->size;
        side->held = side->mark_count = 0;
        if (emit(self, frames, whole, entry, packet, time_ns) != DONE)
            return FAILED;
    }
    return DONE;
}

/* -- segments */

/* Handle a segment of a tracked side, or decline it before anything changes. rest: how many bytes more may be stored. */
static int continue_side(Frames *self, int32_t entry, const int64_t *row, Bytes data, int64_t *rest, PyObject *frames)
{
    Connection *connection = self->connections[(entry - 1) >> 1];
    Side *side = &connection->sides[(entry - 1) & 1], *peer = &connection->sides[entry & 1];
    int64_t size = row[SIZE];
    if ((uint32_t)row[SEQ] != side->next_seq || (row[FLAGS] & (SYN | FIN | RST | ACK)) != ACK || !(row[FLAGS] & WINDOW) || row[CAPTURED] != size)
        return DECLINED;
    int64_t acked = peer->position + (int32_t)((uint32_t)row[ACKED] - peer->next_seq);
    if ((acked > peer->position && acked <= peer->position + self->max_window) || size > *rest || !are_valid(self, side, data + row[PAYLOAD], size))
        return DECLINED;
    connection->last_packet = row[PACKET];
    if (row[TIME] != NO_TIME)
        connection->last_ns = row[TIME];
    peer->peer_ack = row[ACKED];
    if (peer->acked < acked && acked <= peer->position)
        peer->acked = acked;
    if (!size)
        return DONE;
    side->position += size;
    side->next_seq += (uint32_t)size;
    *rest += side->stored;
    if (deliver(side, data + row[PAYLOAD], size, self->limit) != DONE)
        return FAILED;
    *rest -= side->stored;
    return cut_frames(self, side, entry, data + row[PAYLOAD], size, row[PACKET], row[TIME], frames);
}

/* cut(data, keys, numbers, start, items, bytes, rest) -> (next, behind, slot, frames, numbers of frames, rest)

   Handles segments from the row `start` on, until one is declined, or there are so many frames or bytes (FULL). slot: of
   the connection of a declined segment, or UNTRACKED. behind: the row behind it and the segments after it that are not
   tracked. numbers: slot, side, packet, time of each frame, as int64. */
static PyObject *frames_cut(Frames *self, PyObject *args)
{
    PyObject *data, *keys, *numbers;
    Py_ssize_t start, items, bytes;
    long long left;
    if (!PyArg_ParseTuple(args, "SSSnnnL", &data, &keys, &numbers, &start, &items, &bytes, &left))
        return NULL;
    Py_ssize_t end = PyBytes_GET_SIZE(keys) / KEY, held = 0, slot = FULL;
    if (start < 0 || PyBytes_GET_SIZE(numbers) / (NUMBERS * 8) != end)
        return PyErr_Format(PyExc_ValueError, "keys and numbers of different segments");
    PyObject *frames = PyList_New(0);
    if (!frames)
        return NULL;
    self->out_count = 0;
    int64_t rest = left, row[NUMBERS];
    for (; start < end && held < bytes && PyList_GET_SIZE(frames) < items; start++) {
        int32_t entry = self->table[place_of(self, (Bytes)PyBytes_AS_STRING(keys) + start * KEY)];
        if (!entry) {
            slot = UNTRACKED;
            break;
        }
        memcpy(row, PyBytes_AS_STRING(numbers) + start * NUMBERS * 8, sizeof row);
        if (row[SIZE] < 0 || row[PAYLOAD] < 0 || row[CAPTURED] > PyBytes_GET_SIZE(data) - row[PAYLOAD]) {
            PyErr_SetString(PyExc_IndexError, "segment outside of the data");
            goto failed;
        }
        int made = continue_side(self, entry, row, (Bytes)PyBytes_AS_STRING(data), &rest, frames);
        if (made == FAILED) {
            if (!PyErr_Occurred())
                PyErr_NoMemory();
            goto failed;
        }
        if (made == DECLINED) {
            slot = (entry - 1) >> 1;
            break;
        }
        held += (Py_ssize_t)row[SIZE];
    }
    Py_ssize_t behind = start;
    if (slot != FULL)
        for (behind++; behind < end && behind - start < MAX_BEHIND; behind++)
            if (self->table[place_of(self, (Bytes)PyBytes_AS_STRING(keys) + behind * KEY)])
                break;
    return Py_BuildValue("nnnNy#L", start, behind, slot, frames, self->out ? (const char *)self->out : "", self->out_count * 8, (long long)rest);
failed:
    Py_DECREF(frames);
    return NULL;
}

/* -- what is tracked: the state of a connection is a `TrackedState` of `tracked_state.py` */

static PyTypeObject *StateType;

enum { LAST_PACKET, LAST_NS, SIDES, PER_SIDE = 6 };

static void clear_side(Side *side)
{
    Py_CLEAR(side->frame);
    PyMem_Free(side->recent);
    PyMem_Free(side->marks);
}

static void free_connection(Connection *connection)
{
    clear_side(&connection->sides[0]);
    clear_side(&connection->sides[1]);
    PyMem_Free(connection);
}

static int fill_side(Frames *self, Side *side, Bytes numbers, PyObject *recent, PyObject *held, PyObject *marks)
{
    side->next_seq = (uint32_t)int64_at(numbers);
    side->position = int64_at(numbers + 8);
    side->acked = int64_at(numbers + 16);
    side->peer_ack = int64_at(numbers + 24);
    side->framed = int64_at(numbers + 40);
    if (store_recent(side, (Bytes)PyBytes_AS_STRING(recent), PyBytes_GET_SIZE(recent)) != DONE)
        return FAILED;
    Py_ssize_t size = PyBytes_GET_SIZE(held);
    Bytes p = (Bytes)PyBytes_AS_STRING(held);
    if (!are_valid(self, side, p, size))
        return DECLINED;
    if (size && complete(side, p, size) != size)
        return PyErr_Occurred() ? FAILED : DECLINED;
    if (size >= PREFIX && side->held >= PREFIX + side->size)
        return DECLINED;
    for (Py_ssize_t at = 0; at + 24 <= PyBytes_GET_SIZE(marks); at += 24) {
        Bytes mark = (Bytes)PyBytes_AS_STRING(marks) + at;
        if (add_mark(side, int64_at(mark), int64_at(mark + 8), int64_at(mark + 16)) != DONE)
            return FAILED;
    }
    return DONE;
}

static int new_slot(Frames *self)
{
    if (!self->free_count) {
        Py_ssize_t room = self->room ? 2 * self->room : 64;
        Connection **connections = PyMem_Realloc(self->connections, (size_t)room * sizeof *connections);
        if (!connections)
            return FAILED;
        self->connections = connections;
        int32_t *free_slots = PyMem_Realloc(self->free_slots, (size_t)room * sizeof *free_slots);
        if (!free_slots)
            return FAILED;
        self->free_slots = free_slots;
        for (Py_ssize_t slot = room; slot-- > self->room;) {
            connections[slot] = NULL;
            free_slots[self->free_count++] = (int32_t)slot;
        }
        self->room = room;
    }
    return self->free_slots[self->free_count - 1];
}

/* track(key, client, state) -> slot, or -1

   key: of side 0. -1: a held frame is complete, or its size is invalid. */
static PyObject *frames_track(Frames *self, PyObject *args)
{
    PyObject *key, *state, *numbers, *recent[2], *held[2], *marks[2];
    int client;
    if (!PyArg_ParseTuple(args, "SiO!", &key, &client, StateType, &state) ||
        !PyArg_ParseTuple(state, "SSSSSSS", &numbers, &recent[0], &recent[1], &held[0], &held[1], &marks[0], &marks[1]))
        return NULL;
    if (PyBytes_GET_SIZE(key) != KEY || PyBytes_GET_SIZE(numbers) != (SIDES + 2 * PER_SIDE) * 8)
        return PyErr_Format(PyExc_ValueError, "invalid state");
    if ((uint64_t)self->used * 2 > self->mask && more_places(self) != DONE)
        return PyErr_NoMemory();
    int slot = new_slot(self);
    Connection *made = slot < 0 ? NULL : PyMem_Calloc(1, sizeof *made);
    if (!made)
        return PyErr_NoMemory();
    Bytes first = (Bytes)PyBytes_AS_STRING(key), number = (Bytes)PyBytes_AS_STRING(numbers);
    made->last_packet = int64_at(number);
    made->last_ns = int64_at(number + 8);
    memcpy(made->sides[0].key, first, KEY);
    memcpy(made->sides[1].key, first + END, END);
    memcpy(made->sides[1].key + END, first, END);
    for (int i = 0; i < 2; i++) {
        Side *side = &made->sides[i];
        side->least = i == client ? MIN_REQUEST : PREFIX;
        int filled = fill_side(self, side, number + (SIDES + i * PER_SIDE) * 8, recent[i], held[i], marks[i]);
        if (filled == DONE && (self->table[place_of(self, side->key)] || (i && !memcmp(side->key, first, KEY))))
            filled = DECLINED;
        if (filled != DONE) {
            free_connection(made);
            if (filled == FAILED)
                return PyErr_Occurred() ? NULL : PyErr_NoMemory();
            return PyLong_FromLong(-1);
        }
    }
    self->connections[slot] = made;
    self->free_count--;
    for (int i = 0; i < 2; i++)
        self->table[place_of(self, made->sides[i].key)] = 2 * slot + i + 1;
    self->used += 2;
    return PyLong_FromLong(slot);
}

static PyObject *held_bytes(const Side *side)
{
    PyObject *held = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)side->held);
    if (held) {
        int64_t prefix = side->held < PREFIX ? side->held : PREFIX;
        memcpy(PyBytes_AS_STRING(held), side->prefix, (size_t)prefix);
        if (side->held > PREFIX)
            memcpy(PyBytes_AS_STRING(held) + PREFIX, PyBytes_AS_STRING(side->frame), (size_t)(side->held - PREFIX));
    }
    return held;
}

static PyObject *recent_bytes(const Side *side) { return PyBytes_FromStringAndSize((const char *)side->recent, (Py_ssize_t)side->stored); }

/* untrack(slot) -> state */
static PyObject *frames_untrack(Frames *self, PyObject *number)
{
    Py_ssize_t slot = PyLong_AsSsize_t(number);
    if (slot == -1 && PyErr_Occurred())
        return NULL;
    if (slot < 0 || slot >= self->room || !self->connections[slot])
        return PyErr_Format(PyExc_KeyError, "%zd", slot);
    Connection *connection = self->connections[slot];
    const Side *first = &connection->sides[0], *second = &connection->sides[1];
    int64_t numbers[SIDES + 2 * PER_SIDE] = {connection->last_packet, connection->last_ns};
    for (int i = 0; i < 2; i++) {
        const Side *side = &connection->sides[i];
        const int64_t values[PER_SIDE] = {side->next_seq, side->position, side->acked, side->peer_ack, side->delivered, side->framed};
        memcpy(numbers + SIDES + i * PER_SIDE, values, sizeof values);
    }
    PyObject *parts = Py_BuildValue("((y#NNNNy#y#))", (const char *)numbers, (Py_ssize_t)sizeof numbers, recent_bytes(first), recent_bytes(second), held_bytes(first), held_bytes(second),
                                    first->marks ? (const char *)first->marks : "", first->mark_count * (Py_ssize_t)sizeof(Mark),
                                    second->marks ? (const char *)second->marks : "", second->mark_count * (Py_ssize_t)sizeof(Mark));
    PyObject *state = parts ? PyTuple_Type.tp_new(StateType, parts, NULL) : NULL;
    Py_XDECREF(parts);
    if (!state)
        return NULL;
    remove_key(self, first->key);
    remove_key(self, second->key);
    self->connections[slot] = NULL;
    self->free_slots[self->free_count++] = (int32_t)slot;
    free_connection(connection);
    return state;
}

/* -- the type */

static PyObject *frames_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(names))
{
    long long max_frame, limit, max_window;
    if (!PyArg_ParseTuple(args, "LLL", &max_frame, &limit, &max_window))
        return NULL;
    PyObject *text = PyUnicode_FromString("keys of connections");
    Py_hash_t seed = text ? PyObject_Hash(text) : -1;
    Py_XDECREF(text);
    Frames *self = seed == -1 ? NULL : (Frames *)type->tp_alloc(type, 0);
    if (!self)
        return NULL;
    self->max_frame = max_frame < INT32_MAX ? max_frame : INT32_MAX;
    self->limit = limit;
    self->max_window = max_window;
    self->seed = (uint64_t)seed;
    if (more_places(self) != DONE) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    return (PyObject *)self;
}

static void frames_dealloc(Frames *self)
{
    for (Py_ssize_t slot = 0; slot < self->room; slot++)
        if (self->connections[slot])
            free_connection(self->connections[slot]);
    PyMem_Free(self->connections);
    PyMem_Free(self->free_slots);
    PyMem_Free(self->table);
    PyMem_Free(self->out);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyMethodDef frames_methods[] = {
    {"cut", (PyCFunction)frames_cut, METH_VARARGS, NULL},
    {"track", (PyCFunction)frames_track, METH_VARARGS, NULL},
    {"untrack", (PyCFunction)frames_untrack, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

static PyTypeObject FramesType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "kafkawire.capture.frames.in_order.InOrderFrames",
    .tp_basicsize = sizeof(Frames),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = frames_new,
    .tp_dealloc = (destructor)frames_dealloc,
    .tp_methods = frames_methods,
};

static PyModuleDef module = {PyModuleDef_HEAD_INIT, .m_name = "kafkawire.capture.frames.in_order", .m_size = -1};

PyMODINIT_FUNC PyInit_in_order(void)
{
    PyObject *states = PyImport_ImportModule("kafkawire.capture.frames.tracked_state");
    if (!states)
        return NULL;
    Py_XSETREF(StateType, (PyTypeObject *)PyObject_GetAttrString(states, "TrackedState"));
    Py_DECREF(states);
    if (!StateType)
        return NULL;
    PyObject *made = PyModule_Create(&module);
    if (made && (PyModule_AddType(made, &FramesType) < 0 || PyModule_AddObjectRef(made, "AVAILABLE", PY_LITTLE_ENDIAN ? Py_True : Py_False) < 0 ||
                 PyModule_AddIntConstant(made, "FULL", FULL) < 0 || PyModule_AddIntConstant(made, "UNTRACKED", UNTRACKED) < 0))
        Py_CLEAR(made);
    return made;
}
