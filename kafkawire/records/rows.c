/* Rows of columns from the records of one batch of magic 2: the quick way beside `column_decoding`.

   A record is added exactly as `column_decoding.add_record` would, or not at all: before one that is wrong, that
   there is no room for, or whose header keys are not ASCII, this stops, and the Python code goes on. `rows.py` is the
   same module without a C compiler: it stops before every record.

       length: varint | attributes: int8 | timestamp delta: varlong | offset delta: varint |
       key length: varint, key | value length: varint, value | header count: varint,
       (key length: varint, key, value length: varint, value)*

   Nothing is read outside of `data[pos:end]`. What ends SLACK bytes before `end` is read eight bytes at a time and
   without looking for the end at each varint: a record's fixed part takes 26 bytes at most. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

#if !PY_LITTLE_ENDIAN
#error "columns are laid out for little-endian machines"
#endif

#if defined(__GNUC__)
#define INLINE static inline __attribute__((always_inline))
#define APART static __attribute__((noinline))
#define PREFETCH(p) __builtin_prefetch(p)
#else
#define INLINE static inline
#define APART static
#define PREFETCH(p) ((void)0)
#endif

#define SLACK 64
#define AHEAD 512 /* bytes between what is read and what is fetched from the second cache */
#define IN_VIEW 12
#define NULL_LENGTH 1 /* a length of -1, as a varint */
#define CALM 0x2000000000000000

typedef const uint8_t *Bytes;

/* A column of views, or nothing where `words` is NULL: then every row so far is null. */
typedef struct {
    uint64_t *words;
    uint8_t *valid;
    Py_ssize_t nulls;
} Views;

typedef struct {
    Bytes data, end, safe;
    int64_t base_offset, base_timestamp;
    uint32_t buffer;
    int64_t *offsets, *timestamps;
    int32_t *header_ends; /* NULL while there are no headers */
    Views key, value, header_key, header_value;
    Py_ssize_t headers, header_room;
} Columns;

INLINE uint64_t load(Bytes p)
{
    uint64_t word;
    memcpy(&word, p, 8);
    return word;
}

INLINE int64_t unfolded(uint64_t value) { return (int64_t)(value >> 1) ^ -(int64_t)(value & 1); }

/* Read a varint of at most `bits` bits before `end`, byte by byte; NULL if there is none. */
APART Bytes any_varint(Bytes p, Bytes end, int bits, int64_t *found)
{
    uint64_t value = 0;
    for (int shift = 0; p < end; shift += 7) {
        uint8_t byte = *p++;
        if (shift + 7 > bits) {
            if (byte & 0x80)
                return NULL;
            byte &= (1 << (bits - shift)) - 1; /* Kafka drops the bits that do not fit, too */
        }
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *found = unfolded(value);
            return p;
        }
    }
    return NULL;
}

/* Read one of three bytes at most, as it stands, where eight bytes can be read; NULL: it may be longer. */
INLINE Bytes short_varint(Bytes p, uint64_t *found)
{
    uint64_t word = load(p);
    if (!(word & 0x80)) {
        *found = word & 0x7f;
        return p + 1;
    }
    if (!(word & 0x8000)) {
        *found = (word & 0x7f) | (word >> 1 & 0x3f80);
        return p + 2;
    }
    if (!(word & 0x800000)) {
        *found = (word & 0x7f) | (word >> 1 & 0x3f80) | (word >> 2 & 0x1fc000);
        return p + 3;
    }
    return NULL;
}

INLINE Bytes varint(Bytes p, Bytes end, int safe, int bits, int64_t *found)
{
    uint64_t value;
    Bytes after = safe ? short_varint(p, &value) : NULL;
    if (!after)
        return any_varint(p, end, bits, found);
    *found = unfolded(value);
    return after;
}

/* Point the view of a row at `length` bytes from `p`; shorter ones stand in it. */
INLINE void put(const Columns *to, const Views *views, Py_ssize_t row, Bytes p, int64_t length, int safe)
{
    uint64_t *view = views->words + row * 2;
    if (length > IN_VIEW) {
        view[0] = load(p) << 32 | (uint64_t)length;
        view[1] = (uint64_t)(p - to->data) << 32 | to->buffer;
        return;
    }
    uint64_t first = 0, last = 0;
    if (!safe) {
        memcpy(&first, p, length < 8 ? length : 8);
        memcpy(&last, p + 8, length < 8 ? 0 : length - 8);
    } else if (length < 8) {
        first = load(p) & (((uint64_t)1 << 8 * length) - 1);
    } else {
        first = load(p);
        last = load(p + 8) & (((uint64_t)1 << 8 * (length - 8)) - 1);
    }
    view[0] = first << 32 | (uint64_t)length;
    view[1] = last << 32 | first >> 32;
}

static void put_null(Views *views, Py_ssize_t row)
{
    views->words[row * 2] = views->words[row * 2 + 1] = 0;
    views->valid[row >> 3] &= (uint8_t)~(1 << (row & 7));
}

/* Read a length and so many bytes into a row; -1 in `*length` for null. NULL: not possible here. */
INLINE Bytes field(const Columns *to, Views *views, Py_ssize_t row, Bytes p, Bytes stop, int safe, int64_t *length)
{
    if (!(p = varint(p, to->end, safe, 32, length)))
        return NULL;
    if (*length < 0) {
        *length = -1;
        if (views->words)
            put_null(views, row);
        return p;
    }
    if (*length > stop - p || !views->words)
        return NULL;
    put(to, views, row, p, *length, safe);
    return p + *length;
}

static int is_ascii(Bytes p, int64_t length)
{
    uint8_t seen = 0;
    while (length-- > 0)
        seen |= *p++;
    return seen < 0x80;
}

/* Read `count` headers, of which `*nulls` values are null; NULL: not possible here. */
INLINE Bytes headers(Columns *to, Bytes p, Bytes stop, int64_t count, int safe, Py_ssize_t *nulls)
{
    Py_ssize_t row = to->headers;
    if (!to->header_ends || count < 0 || count * 2 > stop - p || count > to->header_room - row)
        return NULL;
    for (Py_ssize_t last = row + count; row < last; row++) {
        int64_t length;
        if (!(p = field(to, &to->header_key, row, p, stop, safe, &length)) || length < 0)
            return NULL;
        if (!is_ascii(p - length, length))
            return NULL;
        if (!(p = field(to, &to->header_value, row, p, stop, safe, &length)))
            return NULL;
        *nulls += length < 0;
    }
    return p;
}

/* Add the record from `p` to `stop` as a row; NULL if that cannot be done here. */
APART Bytes record(Columns *to, Bytes p, Bytes stop, Py_ssize_t row)
{
    int64_t timestamp, offset, key, value, count;
    Py_ssize_t nulls = 0;
    int safe = stop <= to->safe;
    p += 1;
    if (!(p = varint(p, to->end, safe, 64, &timestamp)) || !(p = varint(p, to->end, safe, 32, &offset)))
        return NULL;
    if (timestamp > CALM || timestamp < -CALM)
        return NULL;
    to->timestamps[row] = to->base_timestamp + timestamp;
    to->offsets[row] = to->base_offset + offset;
    if (!(p = field(to, &to->key, row, p, stop, safe, &key)) || !(p = field(to, &to->value, row, p, stop, safe, &value)))
        return NULL;
    if (!(p = varint(p, to->end, safe, 32, &count)) || (count && !(p = headers(to, p, stop, count, safe, &nulls))) || p != stop)
        return NULL;
    to->headers += count;
    to->header_value.nulls += nulls;
    to->key.nulls += key < 0;
    to->value.nulls += value < 0;
    if (to->header_ends)
        to->header_ends[row + 1] = (int32_t)to->headers;
    return p;
}

/* Add the records at `*at` as rows up to `last`, as far as they can be; return the row reached.

   Most records are plain: varints of three bytes at most, a value, no headers. They are added here, where all that is
   needed stays in registers; any other is left to `record`. */
static Py_ssize_t add(Columns *to, Bytes *at, Py_ssize_t row, Py_ssize_t last)
{
    const Columns fixed = *to; /* a copy that no store goes to */
    Py_ssize_t null_keys = 0;
    Bytes p = *at, stop;
    for (; row < last; row++, p = stop) {
        uint64_t length, timestamp, offset;
        int64_t any_length;
        int keyed;
        Bytes q;
        PREFETCH(p + AHEAD);
        PREFETCH(p + AHEAD + 64);
        if (p > fixed.safe || !(q = short_varint(p, &length)) || length & 1)
            goto other;
        stop = q + (length >> 1);
        if (stop > fixed.safe || !(q = short_varint(q + 1, &timestamp)) || !(q = short_varint(q, &offset)))
            goto other;
        fixed.timestamps[row] = fixed.base_timestamp + unfolded(timestamp);
        fixed.offsets[row] = fixed.base_offset + unfolded(offset);
        keyed = *q != NULL_LENGTH;
        if (keyed != !!fixed.key.words)
            goto other;
        if (keyed) {
            if (!(q = short_varint(q, &length)) || length & 1 || (int64_t)(length >> 1) > stop - q)
                goto other;
            put(&fixed, &fixed.key, row, q, length >> 1, 1);
            q += length >> 1;
        } else {
            q++;
        }
        if (!(q = short_varint(q, &length)) || length & 1 || q + (length >> 1) + 1 != stop || stop[-1])
            goto other;
        put(&fixed, &fixed.value, row, q, length >> 1, 1);
        null_keys += !keyed;
        if (fixed.header_ends)
            fixed.header_ends[row + 1] = (int32_t)to->headers;
        continue;
    other:
        q = any_varint(p, fixed.end, 32, &any_length);
        if (!q || any_length < 0 || any_length > fixed.end - q)
            break;
        stop = q + any_length;
        if (!record(to, q, stop, row))
            break;
    }
    to->key.nulls += null_keys;
    *at = p;
    return row;
}

/* Find the memory of `at_least` bytes that a bytearray has; NULL where it is empty and may be. */
static int memory(PyObject *buffer, Py_ssize_t at_least, int optional, void *found)
{
    Py_ssize_t size = PyByteArray_Check(buffer) ? PyByteArray_GET_SIZE(buffer) : -1;
    if (size < at_least && !(optional && size == 0)) {
        PyErr_Format(PyExc_ValueError, "a bytearray of %zd bytes is needed", at_least);
        return 0;
    }
    *(void **)found = size ? PyByteArray_AS_STRING(buffer) : NULL;
    return 1;
}

static int views(PyObject *words, PyObject *valid, Py_ssize_t rows, Views *found)
{
    found->nulls = 0;
    return memory(words, rows * 16, 1, &found->words) && memory(valid, (rows + 7) / 8, !found->words, &found->valid);
}

enum { POS, END, ROW, LAST, BASE_OFFSET, BASE_TIMESTAMP, BUFFER, HEADERS, HEADER_ROOM, NUMBERS };
enum { OFFSETS, TIMESTAMPS, HEADER_ENDS, KEYS, VALUES = KEYS + 2, HEADER_KEYS = VALUES + 2, HEADER_VALUES = HEADER_KEYS + 2, BUFFERS = HEADER_VALUES + 2 };

/* add_rows(data: bytes, *numbers: int, buffers: tuple[bytearray, ...]), as in rows.py */
static PyObject *add_rows(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    long long n[NUMBERS];
    if (count != NUMBERS + 2 || !PyBytes_Check(args[0]) || !PyTuple_Check(args[count - 1]) || PyTuple_GET_SIZE(args[count - 1]) != BUFFERS)
        return PyErr_Format(PyExc_TypeError, "add_rows takes bytes, %d numbers and %d buffers", NUMBERS, BUFFERS);
    for (int i = 0; i < NUMBERS; i++)
        if ((n[i] = PyLong_AsLongLong(args[1 + i])) == -1 && PyErr_Occurred())
            return NULL;
    if (n[POS] < 0 || n[POS] > n[END] || n[END] > PyBytes_GET_SIZE(args[0]) || n[END] > INT32_MAX || n[ROW] < 0 || n[LAST] > INT32_MAX || n[HEADERS] < 0 || n[HEADER_ROOM] > INT32_MAX)
        return PyErr_Format(PyExc_ValueError, "bytes %lld to %lld, rows %lld to %lld", n[POS], n[END], n[ROW], n[LAST]);
    Bytes data = (Bytes)PyBytes_AS_STRING(args[0]), at = data + n[POS];
    Columns to = {.data = data, .end = data + n[END], .safe = data + n[END] - SLACK, .base_offset = n[BASE_OFFSET], .base_timestamp = n[BASE_TIMESTAMP], .buffer = (uint32_t)n[BUFFER], .headers = n[HEADERS], .header_room = n[HEADER_ROOM]};
    PyObject **buffers = &PyTuple_GET_ITEM(args[count - 1], 0);
    if (!memory(buffers[OFFSETS], n[LAST] * 8, 0, &to.offsets) || !memory(buffers[TIMESTAMPS], n[LAST] * 8, 0, &to.timestamps) ||
        !memory(buffers[HEADER_ENDS], (n[LAST] + 1) * 4, 1, &to.header_ends) ||
        !views(buffers[KEYS], buffers[KEYS + 1], n[LAST], &to.key) || !views(buffers[VALUES], buffers[VALUES + 1], n[LAST], &to.value) ||
        !views(buffers[HEADER_KEYS], buffers[HEADER_KEYS + 1], n[HEADER_ROOM], &to.header_key) ||
        !views(buffers[HEADER_VALUES], buffers[HEADER_VALUES + 1], n[HEADER_ROOM], &to.header_value))
        return NULL;
    Py_ssize_t row = n[ROW];
    if (n[BASE_TIMESTAMP] < CALM && n[BASE_TIMESTAMP] > -CALM)
        row = add(&to, &at, row, n[LAST]);
    const Py_ssize_t said[] = {row, at - data, to.key.nulls, to.value.nulls, to.headers, to.header_value.nulls};
    PyObject *made = PyTuple_New(Py_ARRAY_LENGTH(said));
    for (size_t i = 0; made && i < Py_ARRAY_LENGTH(said); i++) {
        PyObject *number = PyLong_FromSsize_t(said[i]);
        if (!number)
            Py_CLEAR(made);
        else
            PyTuple_SET_ITEM(made, i, number);
    }
    return made;
}

/* room(size: int) -> bytearray, of bytes that are whatever they are: each is written before it is read */
static PyObject *room(PyObject *Py_UNUSED(module), PyObject *size)
{
    Py_ssize_t bytes = PyNumber_AsSsize_t(size, PyExc_OverflowError);
    return bytes == -1 && PyErr_Occurred() ? NULL : PyByteArray_FromStringAndSize(NULL, bytes);
}

static PyMethodDef methods[] = {
    {"add_rows", (PyCFunction)(void (*)(void))add_rows, METH_FASTCALL, NULL},
    {"room", room, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef module = {PyModuleDef_HEAD_INIT, .m_name = "kafkawire.records.rows", .m_methods = methods};

PyMODINIT_FUNC PyInit_rows(void) { return PyModuleDef_Init(&module); }
