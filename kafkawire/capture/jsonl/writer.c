/* Writes JSON lines directly from the bytes of frames: the fast path of `rows.py` and `records.py`.

   A row, or the content of a batch, is written exactly as those modules write the decoded one, or declined: tagged
   fields, numbers that Python formats in another way, and anything invalid are left to Python. `writer.py` is the same module without a C compiler: it declines everything.

       Program: the fields of a struct in wire order, each with the text before its value
       Text:    a buffer of ASCII text for rows and records

   Nothing is read outside of the given bytes, and nothing is nested deeper than MAX_DEPTH. */

#include "../wire.h"

#ifdef __GNUC__
#define RARE __attribute__((cold, noinline)) /* compiled for size */
#else
#define RARE
#endif

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#define WIDE __attribute__((target("avx2")))
#endif

#define MAX_DEPTH 60
#define MAX_KEYS 64   /* of a JSON object in a value */
#define PATH_ROOM 256
#define PIECE 4096 /* bytes of a text for which room is reserved at a time */

enum { INT8 = 1, INT16, UINT16, INT32, UINT32, INT64, BOOL, STRING, BYTES, UUID, FLOAT64, RECORDS, STRUCT, ERROR_CODE };
enum { NO_ROLE = -1, ROLE_RECORDS, ROLE_TOPIC, ROLE_TOPIC_ID, ROLE_PARTITION, ROLE_WITHIN, ROLE_PROTOCOL_TYPE, ROLE_PROTOCOL_NAME, ROLE_PAYLOAD /* and those after it */ };

static char hexes[] = "0123456789abcdef";
static char pairs[200];           /* "000102..99" */
static uint16_t couples[1 << 12]; /* two characters of base64 for twelve bits */
static char of_64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
static uint8_t is_plain[256]; /* bytes that need no escape in a JSON string */

/* -- programs */

/* Program(flexible: bool, steps: tuple[tuple[lead, attribute, kind, array, nullable, role, inner | None], ...]) */
RARE static PyObject *program_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(names))
{
    int is_flexible;
    PyObject *steps;
    if (!PyArg_ParseTuple(args, "pO!", &is_flexible, &PyTuple_Type, &steps))
        return NULL;
    Py_ssize_t count = PyTuple_GET_SIZE(steps);
    Program *self = new_program(type, count, is_flexible);
    if (!self)
        return NULL;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *lead, *name, *inner;
        int kind, is_array, is_nullable, role;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(steps, i), "SSippiO", &lead, &name, &kind, &is_array, &is_nullable, &role, &inner))
            goto failed;
        if (inner != Py_None && !Py_IS_TYPE(inner, &ProgramType)) {
            PyErr_SetString(PyExc_TypeError, "expected a Program or None");
            goto failed;
        }
        if ((kind == STRUCT) != (inner != Py_None) || kind < INT8 || kind > ERROR_CODE || (kind == STRUCT && !is_array)) {
            PyErr_Format(PyExc_ValueError, "invalid kind %d", kind);
            goto failed;
        }
        self->steps[i] = (Step){.lead = Py_NewRef(lead), .name = Py_NewRef(name), .op = (int8_t)kind, .is_array = (int8_t)is_array, .is_nullable = (int8_t)is_nullable, .role = (int8_t)role};
        if (inner != Py_None)
            self->steps[i].inner = (Program *)Py_NewRef(inner);
    }
    return (PyObject *)self;
failed:
    Py_DECREF(self);
    return NULL;
}

PROGRAM_TYPE("kafkawire.capture.jsonl.writer", program_new);

/* -- the buffer */

/* The topic and partition of records, or the name and type of a payload's protocol. */
typedef struct {
    Bytes topic, type;
    Py_ssize_t topic_size, type_size; /* -1 for none */
    int64_t partition;
    int has_partition;
} Whose;

static const Whose nobody = {.topic_size = -1, .type_size = -1};

/* A field of records, or with a payload. topic of `whose`: NULL where it is `uuid`. */
typedef struct {
    Bytes data;
    Py_ssize_t size;
    Whose whose;
    int role;
    PyObject *name; /* bytes: of the field, behind `path`; NULL if the path includes it */
    int path_size;
    char path[PATH_ROOM + 1]; /* ends in 0 */
    char uuid[22];
} Place;

typedef struct {
    PyObject_HEAD
    char *start;
    Py_ssize_t size, room;
    PyObject *value_text;       /* value_text(data: bytes) -> str: writes the values that C declines */
    PyObject *field_text;       /* field_text(path, topic, partition, data) -> str: the same for fields of records */
    PyObject *payload_text;     /* payload_text(role - ROLE_PAYLOAD, protocol type, its name, data) -> str | None; None if there are no payloads */
    PyObject *batch_body;       /* batch_body(data, start, end, opened bytes, records) -> (data, start, end) | None: see `records.py` */
    int has_content;            /* whether records are written, not only counted */
    Place *places;              /* of the row that is written */
    Py_ssize_t placed, place_room;
    int views;                  /* exported views of the buffer, which must not move while there are any */
    int64_t second;             /* the second of `second_text` */
    char second_text[24];
} Text;

RARE static int more_room(Text *to, Py_ssize_t size)
{
    Py_ssize_t room = to->room * 2 > to->size + size ? to->room * 2 : to->size + size;
    if (to->views) {
        PyErr_SetString(PyExc_BufferError, "Existing exports of data: object cannot be re-sized");
        return FAILED;
    }
    char *start = PyMem_Realloc(to->start, (size_t)room);
    if (!start) {
        PyErr_NoMemory();
        return FAILED;
    }
    to->start = start;
    to->room = room;
    return DONE;
}

#define ROOM(to, wanted) \
    do { \
        if ((to)->room - (to)->size < (Py_ssize_t)(wanted) && more_room(to, wanted) < 0) \
            return FAILED; \
    } while (0)

/* The caller of these has reserved the room. */
static inline void put(Text *to, const void *text, Py_ssize_t size)
{
    memcpy(to->start + to->size, text, (size_t)size);
    to->size += size;
}

static inline void put_one(Text *to, char c) { to->start[to->size++] = c; }

#define PUT(to, text) put(to, text, sizeof(text) - 1)

static inline void put_number(Text *to, int64_t value)
{
    char digits[20], *p = digits + sizeof digits;
    uint64_t left = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    if (value < 0)
        put_one(to, '-');
    while (left >= 100) {
        p -= 2;
        memcpy(p, pairs + 2 * (left % 100), 2);
        left /= 100;
    }
    if (left >= 10) {
        p -= 2;
        memcpy(p, pairs + 2 * left, 2);
    } else
        *--p = (char)('0' + left);
    put(to, p, digits + sizeof digits - p);
}

static inline void put_escaped(Text *to, uint32_t unit) /* \uxxxx */
{
    char text[6] = {'\\', 'u', hexes[unit >> 12 & 15], hexes[unit >> 8 & 15], hexes[unit >> 4 & 15], hexes[unit & 15]};
    put(to, text, 6);
}

/* Put a character as Python's `json` does in ASCII: twelve bytes at most. */
RARE static void put_character(Text *to, uint32_t c)
{
    static const char shorts[] = "\bb\tt\nn\ff\rr\"\"\\\\";
    if (c < 128 && is_plain[c]) {
        put_one(to, (char)c);
        return;
    }
    for (const char *s = shorts; *s; s += 2)
        if (c == (uint32_t)*s) {
            put_one(to, '\\');
            put_one(to, s[1]);
            return;
        }
    if (c < 0x10000) {
        put_escaped(to, c);
        return;
    }
    put_escaped(to, 0xd7c0 + (c >> 10));
    put_escaped(to, 0xdc00 + (c & 0x3ff));
}

/* Read a UTF-8 character that is not ASCII; NULL if it is invalid. */
RARE static Bytes character(Bytes p, Bytes end, uint32_t *found)
{
    uint32_t c = *p;
    int more = c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : 1;
    if (c < 0xc2 || c > 0xf4 || end - p <= more)
        return NULL;
    c &= 0x3f >> more;
    for (int i = 1; i <= more; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return NULL;
        c = c << 6 | (p[i] & 0x3f);
    }
    if ((more == 2 && (c < 0x800 || c >> 11 == 0x1b)) || (more == 3 && (c < 0x10000 || c > 0x10ffff)))
        return NULL;
    *found = c;
    return p + more + 1;
}

/* Mark the bytes of a word that need an escape in a JSON string: the lowest mark is exact. */
static inline uint64_t marks(uint64_t word)
{
#define EACH(byte) (0x0101010101010101u * (byte))
#define NONE_OF(word) (((word) - EACH(1)) & ~(word))
    return (word | (word - EACH(0x20)) | NONE_OF(word ^ EACH('"')) | NONE_OF(word ^ EACH('\\')) | NONE_OF(word ^ EACH(0x7f))) & EACH(0x80);
}

#ifdef WIDE
/* Mark those of 16 bytes that need an escape: a bit each. */
static inline int marks_of_16(__m128i bytes)
{
#define ARE(c) _mm_cmpeq_epi8(bytes, _mm_set1_epi8(c))
    __m128i low = _mm_cmplt_epi8(bytes, _mm_set1_epi8(0x20)); /* and those from 128 on, which are negative */
    return _mm_movemask_epi8(_mm_or_si128(_mm_or_si128(low, ARE(0x7f)), _mm_or_si128(ARE('"'), ARE('\\'))));
}
#endif

/* Find the first byte that needs an escape in a JSON string. */
static inline Bytes skip_plain(Bytes p, Bytes end)
{
    uint64_t word;
#ifdef WIDE
    for (; end - p >= 16; p += 16) {
        int marked = marks_of_16(_mm_loadu_si128((const void *)p));
        if (marked)
            return p + __builtin_ctz((unsigned)marked);
    }
#endif
    for (; end - p >= 8; p += 8) {
        memcpy(&word, p, 8);
        if (marks(word))
            break;
    }
    while (p < end && is_plain[*p])
        p++;
    return p;
}

/* Copy bytes up to the first one that needs an escape; there is room for all up to `end`. */
static inline Bytes put_plain(Text *to, Bytes p, Bytes end)
{
    char *out = to->start + to->size;
    uint64_t word;
#ifdef WIDE
    for (; end - p >= 16; p += 16, out += 16) {
        __m128i bytes = _mm_loadu_si128((const void *)p);
        _mm_storeu_si128((void *)out, bytes);
        int marked = marks_of_16(bytes);
        if (marked) {
            int plain = __builtin_ctz((unsigned)marked);
            to->size = out + plain - to->start;
            return p + plain;
        }
    }
#endif
    for (; end - p >= 8; p += 8, out += 8) {
        memcpy(&word, p, 8);
        memcpy(out, &word, 8);
        if (marks(word))
            break;
    }
    while (p < end && is_plain[*p])
        *out++ = (char)*p++;
    to->size = out - to->start;
    return p;
}

/* Put UTF-8 as a JSON string. */
static int put_string(Text *to, Bytes p, Py_ssize_t size)
{
    Bytes end = p + size;
    ROOM(to, 2);
    put_one(to, '"');
    while (p < end) {
        Bytes piece = end - p > PIECE ? p + PIECE : end;
        ROOM(to, 6 * (piece - p) + 16);
        while (p < piece) {
            p = put_plain(to, p, piece);
            if (p == piece)
                break;
            uint32_t c = *p;
            if (c < 128)
                p++;
            else if (!(p = character(p, end, &c)))
                return DECLINED;
            put_character(to, c);
        }
    }
    ROOM(to, 1);
    put_one(to, '"');
    return DONE;
}

#ifdef WIDE
static int has_wide; /* whether there are 256-bit registers */

/* Encode bytes, 24 at a time, while there are 28; return how many. (Muła, Lemire: "Faster Base64 encoding and decoding
   using AVX2 instructions", 2018) */
WIDE static Py_ssize_t wide_base64(char *out, Bytes start, Py_ssize_t size)
{
    const __m256i order = _mm256_broadcastsi128_si256(_mm_setr_epi8(1, 0, 2, 1, 4, 3, 5, 4, 7, 6, 8, 7, 10, 9, 11, 10));
    const __m256i shifts = _mm256_broadcastsi128_si256(_mm_setr_epi8(65, 71, -4, -4, -4, -4, -4, -4, -4, -4, -4, -4, -19, -16, 0, 0));
    Bytes p = start;
    for (; size >= 28; p += 24, out += 32, size -= 24) {
        __m256i in = _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const void *)p)), _mm_loadu_si128((const void *)(p + 12)), 1);
        in = _mm256_shuffle_epi8(in, order);
        __m256i odd = _mm256_mulhi_epu16(_mm256_and_si256(in, _mm256_set1_epi32(0x0fc0fc00)), _mm256_set1_epi32(0x04000040));
        __m256i even = _mm256_mullo_epi16(_mm256_and_si256(in, _mm256_set1_epi32(0x003f03f0)), _mm256_set1_epi32(0x01000010));
        __m256i values = _mm256_or_si256(odd, even); /* of six bits each */
        __m256i kind = _mm256_sub_epi8(_mm256_subs_epu8(values, _mm256_set1_epi8(51)), _mm256_cmpgt_epi8(values, _mm256_set1_epi8(25)));
        _mm256_storeu_si256((void *)out, _mm256_add_epi8(values, _mm256_shuffle_epi8(shifts, kind)));
    }
    return p - start;
}
#endif

static int put_base64(Text *to, Bytes p, Py_ssize_t size)
{
    ROOM(to, size / 3 * 4 + 8);
    char *out = to->start + to->size;
    Bytes end = p + size;
    *out++ = '"';
#ifdef WIDE
    if (has_wide && size >= 28) {
        Py_ssize_t done = wide_base64(out, p, size);
        p += done;
        out += done / 3 * 4;
    }
#endif
    for (; end - p >= 3; p += 3, out += 4) {
        uint32_t bits = (uint32_t)p[0] << 16 | (uint32_t)p[1] << 8 | p[2];
        memcpy(out, couples + (bits >> 12), 2);
        memcpy(out + 2, couples + (bits & 0xfff), 2);
    }
    if (end > p) {
        uint32_t bits = (uint32_t)p[0] << 16 | (end - p == 2 ? (uint32_t)p[1] << 8 : 0);
        memcpy(out, couples + (bits >> 12), 2);
        out[2] = end - p == 2 ? of_64[bits >> 6 & 63] : '=';
        out[3] = '=';
        out += 4;
    }
    *out++ = '"';
    to->size = out - to->start;
    return DONE;
}

RARE static void uuid_text(Bytes p, char text[22])
{
    uint32_t bits = 0;
    int held = 0, at = 0;
    for (int i = 0; i < 16; i++) {
        bits = bits << 8 | p[i];
        for (held += 8; held >= 6; held -= 6)
            text[at++] = of_64[bits >> (held - 6) & 63];
    }
    text[at] = of_64[bits << (6 - held) & 63];
    for (int i = 0; i < 22; i++)
        text[i] = text[i] == '+' ? '-' : text[i] == '/' ? '_' : text[i];
}

/* -- bodies */

typedef struct {
    Text *to;
    Cursor in;
    Program *program;
    char path[PATH_ROOM];
    char uuid[22];
} Body;

/* step: NULL for an element of an array, which cannot be null. */
RARE static int put_null(Body *body, Step *step)
{
    Text *to = body->to;
    if (!step || !step->is_nullable)
        return DECLINED;
    ROOM(to, 4);
    PUT(to, "null");
    return DONE;
}

RARE static int put_float(Text *to, double value)
{
    if (!Py_IS_FINITE(value))
        return DECLINED;
    char *text = PyOS_double_to_string(value, 'r', 0, Py_DTSF_ADD_DOT_0, NULL);
    if (!text)
        return FAILED;
    Py_ssize_t size = (Py_ssize_t)strlen(text);
    int made = to->room - to->size < size ? more_room(to, size) : DONE;
    if (made == DONE)
        put(to, text, size);
    PyMem_Free(text);
    return made;
}

static int put_scalar(Body *body, int kind)
{
    static const uint8_t sizes[] = {[INT8] = 1, [INT16] = 2, [UINT16] = 2, [INT32] = 4, [UINT32] = 4, [INT64] = 8, [BOOL] = 1, [UUID] = 16, [FLOAT64] = 8, [ERROR_CODE] = 2};
    Text *to = body->to;
    Bytes p = body->in.at;
    int size = sizes[kind];
    TRY(skip(&body->in, size));
    ROOM(to, 26);
    switch (kind) {
    case BOOL:
        put(to, *p ? "true" : "false", *p ? 4 : 5);
        return DONE;
    case UUID:
        put_one(to, '"');
        uuid_text(p, to->start + to->size);
        to->size += 22;
        put_one(to, '"');
        return DONE;
    case FLOAT64: {
        int64_t bits = big_endian(p, 8);
        double value;
        memcpy(&value, &bits, 8);
        return put_float(to, value);
    }
    case ERROR_CODE: /* a row with errors lists them (see `rows.py`) */
        if (p[0] || p[1])
            return DECLINED;
        put_one(to, '0');
        return DONE;
    case UINT16:
        put_number(to, big_endian(p, 2) & 0xffff);
        return DONE;
    case UINT32:
        put_number(to, big_endian(p, 4) & 0xffffffff);
        return DONE;
    default:
        put_number(to, big_endian(p, size));
        return DONE;
    }
}

/* Put a string or bytes; `found` and `size` say where they are, size -1 for null. */
static int put_sized(Body *body, int kind, Step *step, Bytes *found, int64_t *size)
{
    TRY(length(&body->in, kind == STRING ? 2 : 4, size));
    if (*size < 0)
        return put_null(body, step);
    *found = body->in.at;
    TRY(skip(&body->in, *size));
    return kind == STRING ? put_string(body->to, *found, *size) : put_base64(body->to, *found, *size);
}

static int put_value(Body *body, int kind, Step *step)
{
    Bytes data;
    int64_t size;
    return kind == STRING || kind == BYTES || kind == RECORDS ? put_sized(body, kind, step, &data, &size) : put_scalar(body, kind);
}

RARE static int note_place(Body *body, int path, Step *step, const Whose *whose, Bytes data, Py_ssize_t size)
{
    Text *to = body->to;
    if (to->placed == to->place_room) {
        Py_ssize_t room = 2 * to->place_room + 4;
        Place *places = PyMem_Realloc(to->places, (size_t)room * sizeof *places);
        if (!places) {
            PyErr_NoMemory();
            return FAILED;
        }
        to->places = places;
        to->place_room = room;
    }
    Place *place = to->places + to->placed++;
    *place = (Place){.data = data, .size = size, .whose = *whose, .role = step->role, .name = step->name, .path_size = path};
    memcpy(place->path, body->path, (size_t)path);
    if (whose->topic == (Bytes)body->uuid) {
        place->whose.topic = NULL;
        memcpy(place->uuid, body->uuid, sizeof place->uuid);
    }
    return DONE;
}

/* Whether records are of the metadata topic (see `protocol/secrets.py`): they may hold secrets. */
static int are_metadata(const Whose *whose)
{
    static const char *const topics[] = {"__cluster_metadata", "AAAAAAAAAAAAAAAAAAAAAQ"};
    for (size_t i = 0; i < sizeof topics / sizeof *topics; i++)
        if (whose->topic_size == (Py_ssize_t)strlen(topics[i]) && !memcmp(whose->topic, topics[i], (size_t)whose->topic_size))
            return 1;
    return 0;
}

/* Put a field with records or a payload, or what says whose they are. */
RARE static int put_with_role(Body *body, int path, Step *step, Whose *whose)
{
    Bytes data = body->in.at;
    int64_t size;
    switch (step->role) {
    case ROLE_RECORDS:
        if (are_metadata(whose))
            return DECLINED;
        TRY(put_sized(body, RECORDS, step, &data, &size));
        return size < 0 ? DONE : note_place(body, path, step, whose, data, size);
    case ROLE_TOPIC:
        TRY(put_sized(body, STRING, step, &data, &size));
        if (size >= 0) {
            whose->topic = data;
            whose->topic_size = size;
        }
        return DONE;
    case ROLE_TOPIC_ID:
        TRY(put_scalar(body, UUID));
        uuid_text(data, body->uuid);
        whose->topic = (Bytes)body->uuid;
        whose->topic_size = 22;
        return DONE;
    case ROLE_PARTITION:
        TRY(put_scalar(body, step->op));
        whose->partition = big_endian(data, (int)(body->in.at - data));
        whose->has_partition = 1;
        return DONE;
    case ROLE_PROTOCOL_TYPE:
        TRY(put_sized(body, STRING, step, &whose->type, &size));
        whose->type_size = size > 0 ? size : -1;
        return DONE;
    case ROLE_PROTOCOL_NAME:
        TRY(put_sized(body, STRING, step, &whose->topic, &size));
        whose->topic_size = size > 0 ? size : -1;
        return DONE;
    default:
        if (step->role < ROLE_PAYLOAD)
            return DECLINED;
        TRY(put_sized(body, BYTES, step, &data, &size));
        return size > 0 ? note_place(body, path, step, whose, data, size) : DONE;
    }
}

static int put_struct(Body *body, Program *program, int path, Whose whose, int depth);

static int put_array(Body *body, int path, Step *step, const Whose *whose, int depth)
{
    Text *to = body->to;
    int64_t count;
    TRY(length(&body->in, 4, &count));
    if (count < 0)
        return put_null(body, step);
    TRY(take_elements(&body->in, count));
    ROOM(to, 1);
    put_one(to, '[');
    for (int64_t at = 0; at < count; at++) {
        ROOM(to, 1);
        if (at)
            put_one(to, ',');
        if (!step->inner) {
            TRY(put_value(body, step->op, NULL));
            continue;
        }
        int inner = path;
        if (step->role >= 0) {
            inner += snprintf(body->path + path, (size_t)(PATH_ROOM - path), "%s[%lld].", PyBytes_AS_STRING(step->name), (long long)at);
            if (inner >= PATH_ROOM)
                return DECLINED;
        }
        TRY(put_struct(body, step->inner, inner, *whose, depth + 1));
    }
    ROOM(to, 1);
    put_one(to, ']');
    return DONE;
}

static int put_struct(Body *body, Program *program, int path, Whose whose, int depth)
{
    Text *to = body->to;
    if (depth > MAX_DEPTH)
        return DECLINED;
    if (!Py_SIZE(program)) {
        ROOM(to, 1);
        put_one(to, '{');
    }
    for (Py_ssize_t i = 0; i < Py_SIZE(program); i++) {
        Step *step = program->steps + i;
        Py_ssize_t size = PyBytes_GET_SIZE(step->lead);
        ROOM(to, size);
        put(to, PyBytes_AS_STRING(step->lead), size);
        if (step->is_array)
            TRY(put_array(body, path, step, &whose, depth));
        else if (step->role != NO_ROLE)
            TRY(put_with_role(body, path, step, &whose));
        else
            TRY(put_value(body, step->op, step));
    }
    ROOM(to, 1);
    put_one(to, '}');
    return no_tags(&body->in);
}

/* -- JSON in values */

typedef struct {
    Text *to;
    Bytes at, end;
} Json;

static inline void skip_blanks(Json *json)
{
    while (json->at < json->end && (*json->at == ' ' || *json->at == '\n' || *json->at == '\t' || *json->at == '\r'))
        json->at++;
}

RARE static int hex_unit(Bytes p, uint32_t *found)
{
    uint32_t unit = 0;
    for (int i = 0; i < 4; i++) {
        uint8_t c = p[i], low = c | 0x20;
        if (c >= '0' && c <= '9')
            unit = unit << 4 | (c - '0');
        else if (low >= 'a' && low <= 'f')
            unit = unit << 4 | (uint32_t)(low - 'a' + 10);
        else
            return DECLINED;
    }
    *found = unit;
    return DONE;
}

/* Put a string behind its opening quote. */
static int json_string(Json *json)
{
    static const char escapes[] = "b\bt\tn\nf\fr\r\"\"\\\\//";
    Text *to = json->to;
    ROOM(to, 1);
    put_one(to, '"');
    for (;;) {
        Bytes p = json->at, piece = json->end - p > PIECE ? p + PIECE : json->end;
        ROOM(to, piece - p + 16);
        p = put_plain(to, p, piece);
        json->at = p;
        if (p == json->end)
            return DECLINED;
        if (p == piece)
            continue;
        uint32_t c = *p;
        if (c == '"') {
            json->at = p + 1;
            put_one(to, '"');
            return DONE;
        }
        if (c == '\\') {
            if (json->end - p < 2 || (p[1] == 'u' && json->end - p < 6))
                return DECLINED;
            if (p[1] == 'u') {
                TRY(hex_unit(p + 2, &c));
                json->at = p + 6;
            } else {
                const char *s = escapes;
                while (*s && (uint8_t)*s != p[1])
                    s += 2;
                if (!*s)
                    return DECLINED;
                c = (uint8_t)s[1];
                json->at = p + 2;
            }
        } else if (c < 0x20)
            return DECLINED;
        else if (c < 128)
            json->at = p + 1;
        else {
            if (!(p = character(p, json->end, &c)))
                return DECLINED;
            json->at = p;
        }
        put_character(to, c);
    }
}

static inline int is_digit(Bytes p, Bytes end) { return p < end && *p >= '0' && *p <= '9'; }

#ifdef __SIZEOF_INT128__
typedef unsigned __int128 Big;

/* Whether Python writes `number / 10^places` so for the double nearest to it: no shorter decimal rounds to that, and no
   other of as many digits is as near. number: below 10^17; places: up to 21. Of some others it says no, too. */
RARE static int is_shortest(uint64_t number, int places)
{
    Big ten = 1;
    for (int i = 0; i < places; i++)
        ten *= 10;
    uint64_t high = (uint64_t)(ten >> 64), low = (uint64_t)ten;
    if (number % 10 == 0)
        return 0;
    /* the double is mantissa / 2^shift */
    int shift = 53 - (64 - __builtin_clzll(number)) + (high ? 128 - __builtin_clzll(high) : 64 - __builtin_clzll(low));
    if (shift < 1)
        return 0;
    Big scaled = (Big)number << shift, mantissa = scaled / ten;
    if (mantissa >> 53) {
        shift--;
        scaled >>= 1;
        mantissa = scaled / ten;
    }
    Big rest = 2 * (scaled - mantissa * ten);
    mantissa += rest > ten || (rest == ten && (mantissa & 1));
    if (mantissa <= (Big)1 << 52 || mantissa >> 53)
        return 0;
    Big exact = mantissa * ten, unit = (Big)1 << shift;
    if (2 * (exact > scaled ? exact - scaled : scaled - exact) >= unit)
        return 0;
    Big shorter = (Big)(number - number % 10) << shift;
    return 2 * (exact - shorter) > ten && 2 * (shorter + 10 * unit - exact) > ten;
}
#else
RARE static int is_shortest(uint64_t Py_UNUSED(number), int Py_UNUSED(places)) { return 0; }
#endif

/* Whether the digits of a number without exponent are those that Python writes. fraction: what is behind the point. */
RARE static int is_written_so(Bytes whole, Py_ssize_t wholes, Bytes fraction, Py_ssize_t fractions)
{
    if (*whole == '0' && fractions >= 4 && !memcmp(fraction, "0000", 4))
        return 0; /* Python writes an exponent */
    if (fraction[fractions - 1] == '0' && fractions != 1)
        return 0;
    if (wholes + fractions <= 15) /* so few are found again */
        return 1;
    if (wholes + fractions > 21)
        return 0;
    uint64_t number = 0;
    for (Py_ssize_t i = 0; i < wholes + fractions; i++) {
        if (number >= 10000000000000000u) /* 10^16 */
            return 0;
        number = number * 10 + (uint64_t)(i < wholes ? whole[i] - '0' : fraction[i - wholes] - '0');
    }
    return number && is_shortest(number, (int)fractions);
}

static int json_number(Json *json)
{
    Text *to = json->to;
    Bytes start = json->at, p = start, end = json->end;
    if (*p == '-')
        p++;
    Bytes whole = p;
    if (!is_digit(p, end))
        return DECLINED;
    if (*p++ != '0')
        while (is_digit(p, end))
            p++;
    Py_ssize_t wholes = p - whole, fractions = 0;
    if (p < end && *p == '.' && is_digit(p + 1, end)) {
        Bytes fraction = ++p;
        while (is_digit(p, end))
            p++;
        fractions = p - fraction;
    }
    int has_exponent = 0;
    if (p < end && (*p | 0x20) == 'e') {
        Bytes q = p + 1;
        if (q < end && (*q == '-' || *q == '+'))
            q++;
        if (is_digit(q, end)) {
            has_exponent = 1;
            while (is_digit(q, end))
                q++;
            p = q;
        }
    }
    json->at = p;
    Py_ssize_t size = p - start;
    if (!fractions && !has_exponent) {
        if (size > 4000)
            return DECLINED;
        ROOM(to, size);
        if (*start == '-' && *whole == '0')
            put_one(to, '0');
        else
            put(to, start, size);
        return DONE;
    }
    if (!has_exponent && is_written_so(whole, wholes, whole + wholes + 1, fractions)) {
        ROOM(to, size);
        put(to, start, size);
        return DONE;
    }
    char text[64];
    if (size >= (Py_ssize_t)sizeof text)
        return DECLINED;
    memcpy(text, start, (size_t)size);
    text[size] = 0;
    double value = PyOS_string_to_double(text, NULL, NULL);
    if (value == -1.0 && PyErr_Occurred()) {
        PyErr_Clear();
        return DECLINED;
    }
    return put_float(to, value);
}

static int json_value(Json *json, int depth);

/* Whether the key of `size` bytes at the end of the buffer differs from all before it. */
static int is_new(Text *to, const Py_ssize_t *starts, const Py_ssize_t *sizes, int count, Py_ssize_t start)
{
    Py_ssize_t size = to->size - start;
    for (int i = 0; i < count; i++)
        if (sizes[i] == size && to->start[starts[i] + 1] == to->start[start + 1] && !memcmp(to->start + starts[i], to->start + start, (size_t)size))
            return 0;
    return 1;
}

static int json_object(Json *json, int depth)
{
    Text *to = json->to;
    Py_ssize_t starts[MAX_KEYS], sizes[MAX_KEYS];
    int count = 0;
    ROOM(to, 2);
    put_one(to, '{');
    skip_blanks(json);
    if (json->at < json->end && *json->at == '}') {
        json->at++;
        put_one(to, '}');
        return DONE;
    }
    for (;;) {
        if (json->at == json->end || *json->at != '"' || count == MAX_KEYS)
            return DECLINED;
        json->at++;
        Py_ssize_t start = to->size;
        TRY(json_string(json));
        if (!is_new(to, starts, sizes, count, start))
            return DECLINED;
        starts[count] = start;
        sizes[count++] = to->size - start;
        skip_blanks(json);
        if (json->at == json->end || *json->at++ != ':')
            return DECLINED;
        skip_blanks(json);
        ROOM(to, 1);
        put_one(to, ':');
        TRY(json_value(json, depth));
        skip_blanks(json);
        ROOM(to, 1);
        if (json->at == json->end)
            return DECLINED;
        uint8_t c = *json->at++;
        if (c != '}' && c != ',')
            return DECLINED;
        put_one(to, (char)c);
        if (c == '}')
            return DONE;
        skip_blanks(json);
    }
}

static int json_array(Json *json, int depth)
{
    Text *to = json->to;
    ROOM(to, 2);
    put_one(to, '[');
    skip_blanks(json);
    if (json->at < json->end && *json->at == ']') {
        json->at++;
        put_one(to, ']');
        return DONE;
    }
    for (;;) {
        TRY(json_value(json, depth));
        skip_blanks(json);
        ROOM(to, 1);
        if (json->at == json->end)
            return DECLINED;
        uint8_t c = *json->at++;
        if (c != ']' && c != ',')
            return DECLINED;
        put_one(to, (char)c);
        if (c == ']')
            return DONE;
        skip_blanks(json);
    }
}

static int json_value(Json *json, int depth)
{
    static const char *const words[] = {"true", "false", "null"};
    if (json->at == json->end || depth > MAX_DEPTH)
        return DECLINED;
    switch (*json->at) {
    case '{':
        json->at++;
        return json_object(json, depth + 1);
    case '[':
        json->at++;
        return json_array(json, depth + 1);
    case '"':
        json->at++;
        return json_string(json);
    case 't':
    case 'f':
    case 'n':
        for (int i = 0; i < 3; i++) {
            Py_ssize_t size = (Py_ssize_t)strlen(words[i]);
            if (json->end - json->at >= size && !memcmp(json->at, words[i], (size_t)size)) {
                ROOM(json->to, size);
                put(json->to, words[i], size);
                json->at += size;
                return DONE;
            }
        }
        return DECLINED;
    default:
        return json_number(json);
    }
}

/* -- keys and values */

/* Put the text that a call returned, and release it. */
RARE static int put_given(Text *to, PyObject *text)
{
    if (!text)
        return FAILED;
    int made = DONE;
    if (!PyUnicode_Check(text) || !PyUnicode_IS_ASCII(text)) {
        PyErr_SetString(PyExc_TypeError, "expected ASCII text");
        made = FAILED;
    } else if (to->room - to->size < PyUnicode_GET_LENGTH(text))
        made = more_room(to, PyUnicode_GET_LENGTH(text));
    if (made == DONE)
        put(to, PyUnicode_1BYTE_DATA(text), PyUnicode_GET_LENGTH(text));
    Py_DECREF(text);
    return made;
}

/* Put the result of `records.value_text`. */
RARE static int left_to_python(Text *to, Bytes data, Py_ssize_t size)
{
    PyObject *bytes = PyBytes_FromStringAndSize((const char *)data, size);
    PyObject *text = bytes ? PyObject_CallOneArg(to->value_text, bytes) : NULL;
    Py_XDECREF(bytes);
    return put_given(to, text);
}

RARE static int put_hex(Text *to, Bytes p, Py_ssize_t size)
{
    ROOM(to, 2 * size + 16);
    PUT(to, "{\"hex\":\"");
    char *out = to->start + to->size;
    for (Bytes end = p + size; p < end; p++, out += 2) {
        out[0] = hexes[*p >> 4];
        out[1] = hexes[*p & 15];
    }
    to->size += 2 * size;
    PUT(to, "\"}");
    return DONE;
}

/* Whether bytes are readable UTF-8: printable, or of several lines. */
RARE static int is_readable(Bytes p, Bytes end)
{
    int is_printable = 1, has_lines = 0;
    while ((p = skip_plain(p, end)) < end) {
        uint32_t c = *p;
        if (c < 128)
            p++;
        else if (!(p = character(p, end, &c)))
            return 0;
        has_lines |= c == '\n';
        is_printable = is_printable && (c < 128 ? c >= 32 && c < 127 : Py_UNICODE_ISPRINTABLE(c));
    }
    return is_printable || has_lines;
}

static int put_bytes(Text *to, Bytes data, Py_ssize_t size)
{
    if (size && (*data == '{' || *data == '[')) {
        Py_ssize_t before = to->size;
        Json json = {to, data, data + size};
        ROOM(to, 16);
        PUT(to, "{\"json\":");
        int made = json_value(&json, 0);
        skip_blanks(&json);
        if (made == DONE && json.at == json.end) {
            ROOM(to, 1);
            put_one(to, '}');
            return DONE;
        }
        if (made == FAILED)
            return FAILED;
        to->size = before;
        return left_to_python(to, data, size);
    }
    if (!is_readable(data, data + size))
        return put_hex(to, data, size);
    ROOM(to, 16);
    PUT(to, "{\"text\":");
    TRY(put_string(to, data, size));
    ROOM(to, 1);
    put_one(to, '}');
    return DONE;
}

/* -- records */

static Bytes varint(Bytes p, Bytes end, int bits, int64_t *found)
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
            *found = (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
            return p;
        }
    }
    return NULL;
}

/* Put a length and so many bytes; a negative length is null. */
static int put_field(Text *to, Bytes *at, Bytes stop)
{
    int64_t size;
    Bytes p = varint(*at, stop, 32, &size);
    if (!p || size > stop - p)
        return DECLINED;
    *at = size < 0 ? p : p + size;
    if (size >= 0)
        return put_bytes(to, p, size);
    ROOM(to, 4);
    PUT(to, "null");
    return DONE;
}

RARE static int put_headers(Text *to, Bytes *at, Bytes stop, int64_t count)
{
    if (count < 0 || count * 2 > stop - *at)
        return DECLINED;
    for (int64_t i = 0; i < count; i++) {
        int64_t size;
        Bytes p = varint(*at, stop, 32, &size);
        if (!p || size < 0 || size > stop - p)
            return DECLINED;
        ROOM(to, 16);
        if (i)
            PUT(to, ",[");
        else
            PUT(to, ",\"headers\":[[");
        TRY(put_string(to, p, size));
        *at = p + size;
        ROOM(to, 1);
        put_one(to, ',');
        TRY(put_field(to, at, stop));
        ROOM(to, 2);
        put_one(to, ']');
    }
    ROOM(to, 1);
    put_one(to, ']');
    return DONE;
}

typedef struct {
    int64_t base_offset, base_timestamp, append_timestamp;
    int has_append_time, is_control;
} Shared;

static int put_record(Text *to, const Shared *shared, Bytes p, Bytes stop)
{
    int64_t after, offset, count;
    if (stop - p < 1 || !(p = varint(p + 1, stop, 64, &after)) || !(p = varint(p, stop, 32, &offset)))
        return DECLINED;
    int64_t time = shared->base_timestamp;
    if (after > 0 ? time > INT64_MAX - after : time < INT64_MIN - after)
        return DECLINED;
    ROOM(to, 80);
    PUT(to, "{\"offset\":");
    put_number(to, shared->base_offset + offset);
    PUT(to, ",\"timestamp\":");
    put_number(to, shared->has_append_time ? shared->append_timestamp : time + after);
    PUT(to, ",\"key\":");
    TRY(put_field(to, &p, stop));
    ROOM(to, 16);
    PUT(to, ",\"value\":");
    TRY(put_field(to, &p, stop));
    if (!(p = varint(p, stop, 32, &count)))
        return DECLINED;
    if (count)
        TRY(put_headers(to, &p, stop, count));
    if (p != stop)
        return DECLINED;
    ROOM(to, 16);
    if (shared->is_control)
        PUT(to, ",\"control\":true}");
    else
        put_one(to, '}');
    return DONE;
}

static int put_records(Text *to, const Shared *shared, Bytes p, Bytes end, int64_t count, int is_first)
{
    for (; count > 0; count--) {
        int64_t size;
        if (!(p = varint(p, end, 32, &size)) || size < 0 || size > end - p)
            return DECLINED;
        ROOM(to, 1);
        if (!is_first)
            put_one(to, ',');
        is_first = 0;
        TRY(put_record(to, shared, p, p + size));
        p += size;
    }
    return p == end ? DONE : DECLINED;
}

/* -- fields of records */

/*  base offset: int64 | length: int32 | leader epoch: int32 | magic: int8 | crc: uint32 | attributes: int16 | last offset
    delta: int32 | base timestamp: int64 | max timestamp: int64 | producer: 14 bytes | count: int32 | records */
enum { LENGTH_AT = 8, MAGIC_AT = 16, CRC_AT = 17, ATTRIBUTES_AT = 21, BASE_TIMESTAMP_AT = 27, MAX_TIMESTAMP_AT = 35, COUNT_AT = 57, HEADER = 61 };
enum { OVERHEAD = 12, SMALLEST = 14, CODEC_BITS = 7, APPEND_TIME_BIT = 8, CONTROL_BIT = 32 };
#define FEW_RECORDS (1 << 20)              /* fewer than a Budget has for a batch or a field (see `records/limits.py`) */
#define LARGEST_BASE 0x7fffffff7fffffffLL /* LARGEST_BASE_OFFSET in `records/batch.py` */

static uint32_t (*crc32c)(uint32_t after, Bytes p, size_t size); /* of `castagnoli.c`; NULL if the processor has none */

/* Find the end of the batch at `p`; NULL if it is truncated. */
static int batch_end(Bytes p, Bytes end, Bytes *found)
{
    *found = NULL;
    if (end - p < OVERHEAD)
        return DONE;
    int64_t size = big_endian(p + LENGTH_AT, 4);
    if (size < SMALLEST)
        return DECLINED;
    if (end - p < MAGIC_AT + 1 || size > end - p - OVERHEAD)
        return DONE;
    *found = p + OVERHEAD + size;
    return p[MAGIC_AT] == 2 && *found - p >= HEADER && big_endian(p + COUNT_AT, 4) >= 0 ? DONE : DECLINED;
}

RARE static int put_counts(Text *to, Bytes p, Bytes end)
{
    static const char *const names[] = {"none", "gzip", "snappy", "lz4", "zstd"};
    Bytes next, start = p;
    int64_t batches = 0, records = 0;
    int codecs[5], kinds = 0;
    for (;; p = next) {
        TRY(batch_end(p, end, &next));
        if (!next)
            break;
        batches++;
        records += big_endian(p + COUNT_AT, 4);
        int codec = p[ATTRIBUTES_AT + 1] & CODEC_BITS, at = 0;
        if (codec > 4)
            return DECLINED;
        while (at < kinds && codecs[at] != codec)
            at++;
        if (at == kinds)
            codecs[kinds++] = codec;
    }
    ROOM(to, 256);
    PUT(to, ",\"bytes\":");
    put_number(to, end - start);
    PUT(to, ",\"batches\":");
    put_number(to, batches);
    PUT(to, ",\"records\":");
    put_number(to, records);
    PUT(to, ",\"codecs\":[");
    for (int i = 0; i < kinds; i++) {
        put(to, &",\""[!i], 2 - !i);
        put(to, names[codecs[i]], (Py_ssize_t)strlen(names[codecs[i]]));
        put_one(to, '"');
    }
    put_one(to, ']');
    if (p < end) {
        PUT(to, ",\"cut_tail\":");
        put_number(to, end - p);
    }
    return DONE;
}

/* The cost of the batches of a field so far: decompressed bytes, and records. */
typedef struct {
    Py_ssize_t opened, records;
} Cost;

/* Check the batch `frame[p:next]` in C, if it is not compressed; DECLINED if Python has to do it. */
static int plain_batch(Bytes p, Bytes next, const Cost *cost)
{
    if (!crc32c || (p[ATTRIBUTES_AT + 1] & CODEC_BITS) || cost->records + big_endian(p + COUNT_AT, 4) > FEW_RECORDS)
        return DECLINED;
    return crc32c(0, p + ATTRIBUTES_AT, (size_t)(next - p - ATTRIBUTES_AT)) == (uint32_t)big_endian(p + CRC_AT, 4) ? DONE : DECLINED;
}

/* Put the records of the batch `data[p:next]`; Python checks and decompresses its body, unless C can. */
static int put_batch(Text *to, PyObject *data, Bytes p, Bytes next, Cost *cost)
{
    Bytes start = (Bytes)PyBytes_AS_STRING(data);
    int attributes = p[ATTRIBUTES_AT + 1];
    int64_t count = big_endian(p + COUNT_AT, 4);
    Shared shared = {
        .base_offset = big_endian(p, 8),
        .base_timestamp = big_endian(p + BASE_TIMESTAMP_AT, 8),
        .append_timestamp = big_endian(p + MAX_TIMESTAMP_AT, 8),
        .has_append_time = attributes & APPEND_TIME_BIT,
        .is_control = attributes & CONTROL_BIT,
    };
    if (shared.base_offset > LARGEST_BASE || shared.base_offset < -LARGEST_BASE)
        return DECLINED;
    if (plain_batch(p, next, cost) == DONE) {
        TRY(put_records(to, &shared, p + HEADER, next, count, !cost->records));
        cost->records += count;
        return DONE;
    }
    PyObject *found = PyObject_CallFunction(to->batch_body, "Onnnn", data, (Py_ssize_t)(p - start), (Py_ssize_t)(next - start), cost->opened, cost->records);
    if (!found)
        return FAILED;
    PyObject *bytes;
    Py_ssize_t from, until;
    int made = DECLINED;
    if (found != Py_None) {
        made = PyArg_ParseTuple(found, "Snn", &bytes, &from, &until) ? DONE : FAILED;
        if (made == DONE && (from < 0 || from > until || until > PyBytes_GET_SIZE(bytes)))
            made = DECLINED;
        if (made == DONE)
            made = put_records(to, &shared, (Bytes)PyBytes_AS_STRING(bytes) + from, (Bytes)PyBytes_AS_STRING(bytes) + until, count, !cost->records);
        if (made == DONE) {
            cost->opened += bytes == data ? 0 : PyBytes_GET_SIZE(bytes);
            cost->records += count;
        }
    }
    Py_DECREF(found);
    return made;
}

static Bytes topic_of(const Place *place) { return place->whose.topic ? place->whose.topic : (Bytes)place->uuid; }

RARE static int put_plain_place(Text *to, PyObject *data, const Place *place)
{
    Bytes p = place->data, end = p + place->size, next;
    Py_ssize_t name_size = place->name ? PyBytes_GET_SIZE(place->name) : 0;
    ROOM(to, place->path_size + name_size + 64);
    PUT(to, "{\"path\":\"");
    put(to, place->path, place->path_size);
    if (place->name)
        put(to, PyBytes_AS_STRING(place->name), name_size);
    PUT(to, "\",\"topic\":");
    if (place->whose.topic_size < 0)
        PUT(to, "null");
    else
        TRY(put_string(to, topic_of(place), place->whose.topic_size));
    ROOM(to, 64);
    PUT(to, ",\"partition\":");
    if (place->whose.has_partition)
        put_number(to, place->whose.partition);
    else
        PUT(to, "null");
    TRY(put_counts(to, p, end));
    ROOM(to, 16);
    if (to->has_content) {
        PUT(to, ",\"content\":[");
        Cost cost = {0, 0};
        for (;; p = next) {
            TRY(batch_end(p, end, &next));
            if (!next)
                break;
            TRY(put_batch(to, data, p, next, &cost));
        }
        ROOM(to, 16);
        put_one(to, ']');
    }
    put_one(to, '}');
    return DONE;
}

/* Put the result of `field_text(path, topic | None, partition | None, data)`. */
RARE static int place_left_to_python(Text *to, const Place *place)
{
    PyObject *path = PyUnicode_FromFormat("%s%s", place->path, place->name ? PyBytes_AS_STRING(place->name) : "");
    PyObject *topic = place->whose.topic_size < 0 ? Py_NewRef(Py_None) : PyUnicode_DecodeUTF8((const char *)topic_of(place), place->whose.topic_size, NULL);
    PyObject *partition = place->whose.has_partition ? PyLong_FromLongLong(place->whose.partition) : Py_NewRef(Py_None);
    PyObject *data = PyBytes_FromStringAndSize((const char *)place->data, place->size);
    PyObject *text = path && topic && partition && data ? PyObject_CallFunctionObjArgs(to->field_text, path, topic, partition, data, NULL) : NULL;
    Py_XDECREF(path);
    Py_XDECREF(topic);
    Py_XDECREF(partition);
    Py_XDECREF(data);
    return put_given(to, text);
}

RARE static int put_place(Text *to, PyObject *data, const Place *place)
{
    Py_ssize_t before = to->size;
    int made = put_plain_place(to, data, place);
    if (made != DECLINED)
        return made;
    to->size = before;
    return place_left_to_python(to, place);
}

RARE static int put_places(Text *to, PyObject *data)
{
    int is_first = 1;
    for (Py_ssize_t i = 0; i < to->placed; i++) {
        Place place = to->places[i]; /* a copy: Python may be called */
        if (place.role != ROLE_RECORDS)
            continue;
        ROOM(to, 16);
        if (is_first)
            PUT(to, ",\"records\":[");
        else
            put_one(to, ',');
        is_first = 0;
        TRY(put_place(to, data, &place));
    }
    ROOM(to, 1);
    if (!is_first)
        put_one(to, ']');
    return DONE;
}

/* Put the payload of a field, if it has a known one. */
RARE static int put_payload(Text *to, const Place *place, int *is_first)
{
    PyObject *type = place->whose.type_size < 0 ? Py_NewRef(Py_None) : PyUnicode_DecodeUTF8((const char *)place->whose.type, place->whose.type_size, NULL);
    PyObject *name = place->whose.topic_size < 0 ? Py_NewRef(Py_None) : PyUnicode_DecodeUTF8((const char *)place->whose.topic, place->whose.topic_size, NULL);
    PyObject *text = type && name ? PyObject_CallFunction(to->payload_text, "iOOy#", place->role - ROLE_PAYLOAD, type, name, place->data, place->size) : NULL;
    Py_XDECREF(type);
    Py_XDECREF(name);
    if (text == Py_None) {
        Py_DECREF(text);
        return DONE;
    }
    if (text && to->room - to->size < PATH_ROOM + PyBytes_GET_SIZE(place->name) + 32 && more_room(to, PATH_ROOM + PyBytes_GET_SIZE(place->name) + 32) < 0)
        Py_CLEAR(text);
    if (!text)
        return FAILED;
    if (*is_first)
        PUT(to, ",\"embedded\":{\"");
    else
        PUT(to, ",\"");
    *is_first = 0;
    put(to, place->path, place->path_size);
    put(to, PyBytes_AS_STRING(place->name), PyBytes_GET_SIZE(place->name));
    PUT(to, "\":");
    return put_given(to, text);
}

/* Put the payloads of a row: those of a role together, as Python has them. */
RARE static int put_payloads(Text *to)
{
    int is_first = 1;
    Py_ssize_t others = 0;
    for (Py_ssize_t i = 0; i < to->placed; i++)
        others += to->places[i].role == ROLE_RECORDS;
    if (others < to->placed && to->payload_text == Py_None)
        return DECLINED;
    for (int role = ROLE_PAYLOAD; others < to->placed && role <= INT8_MAX; role++)
        for (Py_ssize_t i = 0; i < to->placed; i++) {
            Place place = to->places[i]; /* a copy: Python is called */
            if (place.role != role)
                continue;
            others++;
            TRY(put_payload(to, &place, &is_first));
        }
    ROOM(to, 1);
    if (!is_first)
        put_one(to, '}');
    return DONE;
}

/* -- rows */

/* Write a time as ISO 8601 in UTC with nanoseconds, in quotes; 32 bytes at most. */
RARE static void put_time(Text *to, int64_t time_ns)
{
    if (time_ns <= 0) {
        PUT(to, "null");
        return;
    }
    int64_t second = time_ns / 1000000000, rest = time_ns % 1000000000;
    if (second != to->second) {
        /* days since 0000-03-01, in eras of 400 years (Howard Hinnant, "chrono-compatible low-level date algorithms") */
        int64_t days = second / 86400 + 719468, left = second % 86400;
        int64_t era = days / 146097, day = days % 146097;
        int64_t year = (day - day / 1460 + day / 36524 - day / 146096) / 365;
        day -= 365 * year + year / 4 - year / 100;
        int64_t month = (5 * day + 2) / 153;
        day -= (153 * month + 2) / 5 - 1;
        month += month < 10 ? 3 : -9;
        year += era * 400 + (month <= 2);
        snprintf(to->second_text, sizeof to->second_text, "\"%04d-%02d-%02dT%02d:%02d:%02d.", (int)(year % 10000), (int)(month & 15), (int)(day & 31), (int)(left / 3600), (int)(left / 60 % 60), (int)(left % 60));
        to->second = second;
    }
    put(to, to->second_text, 21);
    char *out = to->start + to->size;
    for (int i = 8; i >= 0; i--, rest /= 10)
        out[i] = (char)('0' + rest % 10);
    to->size += 9;
    PUT(to, "Z\"");
}

enum { LEAD, PACKET, TIME, ENDS, HEAD, CORRELATION, CLIENT, DATA, START, AT, END, PROGRAM, ELEMENTS, ARGUMENTS };

static int put_row(Text *to, PyObject *const *args, Body *body)
{
    PyObject *texts[] = {args[LEAD], args[ENDS], args[HEAD], args[CLIENT]};
    Py_ssize_t size = 0;
    for (int i = 0; i < 4; i++) {
        if (!PyUnicode_Check(texts[i]) || !PyUnicode_IS_ASCII(texts[i])) {
            PyErr_SetString(PyExc_TypeError, "expected ASCII text");
            return FAILED;
        }
        size += PyUnicode_GET_LENGTH(texts[i]);
    }
    if (!PyBytes_Check(args[DATA])) {
        PyErr_SetString(PyExc_TypeError, "data must be bytes");
        return FAILED;
    }
    if (!Py_IS_TYPE(args[PROGRAM], &ProgramType)) {
        PyErr_SetString(PyExc_TypeError, "program must be a Program");
        return FAILED;
    }
    long long packet = PyLong_AsLongLong(args[PACKET]), time_ns = PyLong_AsLongLong(args[TIME]), correlation = PyLong_AsLongLong(args[CORRELATION]), start = PyLong_AsLongLong(args[START]), at = PyLong_AsLongLong(args[AT]), end = PyLong_AsLongLong(args[END]), elements = PyLong_AsLongLong(args[ELEMENTS]);
    if (PyErr_Occurred())
        return FAILED;
    if (start < 0 || start > at || at > end || end > PyBytes_GET_SIZE(args[DATA]))
        return DECLINED;
    ROOM(to, size + 256);
#define PUT_TEXT(which) put(to, PyUnicode_1BYTE_DATA(args[which]), PyUnicode_GET_LENGTH(args[which]))
    PUT_TEXT(LEAD);
    put_number(to, packet);
    PUT(to, ",\"time\":");
    put_time(to, time_ns);
    put_one(to, ',');
    PUT_TEXT(ENDS);
    PUT_TEXT(HEAD);
    put_number(to, correlation);
    PUT(to, ",\"client_id\":");
    PUT_TEXT(CLIENT);
    PUT(to, ",\"length\":");
    put_number(to, end - start);
    PUT(to, ",\"status\":\"ok\",\"error\":null,\"body\":");
    Program *program = (Program *)args[PROGRAM];
    Bytes data = (Bytes)PyBytes_AS_STRING(args[DATA]);
    body->to = to;
    body->in = (Cursor){data + at, data + end, elements, program->is_flexible};
    TRY(put_struct(body, program, 0, nobody, 0));
    if (body->in.at != body->in.end)
        return DECLINED;
    if (to->placed) {
        TRY(put_payloads(to));
        TRY(put_places(to, args[DATA]));
    }
    ROOM(to, 2);
    PUT(to, "}\n");
    return DONE;
}

/* row(lead, packet, time_ns, ends, head, correlation_id, client_id, data, start, at, end, program, elements) -> bool */
static PyObject *text_row(Text *self, PyObject *const *args, Py_ssize_t count)
{
    if (count != ARGUMENTS)
        return PyErr_Format(PyExc_TypeError, "row takes %d arguments", ARGUMENTS);
    Body body;
    Py_ssize_t before = self->size;
    self->placed = 0;
    int made = put_row(self, args, &body);
    if (made != DONE)
        self->size = before;
    return made == FAILED ? NULL : PyBool_FromLong(made == DONE);
}

/* body(data, at, program, elements) -> bool: only the body */
RARE static PyObject *text_body(Text *self, PyObject *args)
{
    PyObject *data, *program;
    Py_ssize_t at;
    long long elements;
    if (!PyArg_ParseTuple(args, "SnO!L", &data, &at, &ProgramType, &program, &elements))
        return NULL;
    Bytes start = (Bytes)PyBytes_AS_STRING(data);
    Body body = {.to = self, .in = {start + at, start + PyBytes_GET_SIZE(data), elements, ((Program *)program)->is_flexible}};
    Py_ssize_t before = self->size;
    self->placed = 0;
    int made = at < 0 || at > PyBytes_GET_SIZE(data) ? DECLINED : put_struct(&body, (Program *)program, 0, nobody, 0);
    if (made == DONE && body.in.at != body.in.end)
        made = DECLINED;
    if (made != DONE)
        self->size = before;
    return made == FAILED ? NULL : PyBool_FromLong(made == DONE);
}

/* place(path, topic | None, partition | None, data: bytes): a field of records */
RARE static PyObject *text_place(Text *self, PyObject *args)
{
    PyObject *path, *topic, *partition, *data;
    if (!PyArg_ParseTuple(args, "UOOS", &path, &topic, &partition, &data))
        return NULL;
    if (!PyUnicode_IS_ASCII(path) || PyUnicode_GET_LENGTH(path) > PATH_ROOM || (topic != Py_None && !PyUnicode_Check(topic)) || (partition != Py_None && !PyLong_Check(partition)))
        return PyErr_Format(PyExc_TypeError, "expected a short ASCII path, str or None, int or None");
    Place place = {.data = (Bytes)PyBytes_AS_STRING(data), .size = PyBytes_GET_SIZE(data), .path_size = (int)PyUnicode_GET_LENGTH(path), .whose = nobody};
    memcpy(place.path, PyUnicode_1BYTE_DATA(path), (size_t)place.path_size);
    if (topic != Py_None && !(place.whose.topic = (Bytes)PyUnicode_AsUTF8AndSize(topic, &place.whose.topic_size)))
        return NULL;
    if (partition != Py_None) {
        place.whose.partition = PyLong_AsLongLong(partition);
        place.whose.has_partition = 1;
        if (place.whose.partition == -1 && PyErr_Occurred())
            return NULL;
    }
    if (put_place(self, data, &place) == FAILED)
        return NULL;
    Py_RETURN_NONE;
}

/* value(data: bytes): a key or a value */
RARE static PyObject *text_value(Text *self, PyObject *data)
{
    if (!PyBytes_Check(data))
        return PyErr_Format(PyExc_TypeError, "value must be bytes");
    int made = put_bytes(self, (Bytes)PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data));
    if (made == FAILED)
        return NULL;
    Py_RETURN_NONE;
}

RARE static PyObject *text_write(Text *self, PyObject *text)
{
    if (!PyUnicode_Check(text) || !PyUnicode_IS_ASCII(text))
        return PyErr_Format(PyExc_TypeError, "expected ASCII text");
    Py_ssize_t size = PyUnicode_GET_LENGTH(text);
    if (self->room - self->size < size && more_room(self, size) < 0)
        return NULL;
    put(self, PyUnicode_1BYTE_DATA(text), size);
    Py_RETURN_NONE;
}

RARE static PyObject *text_truncate(Text *self, PyObject *size)
{
    Py_ssize_t wanted = PyNumber_AsSsize_t(size, PyExc_OverflowError);
    if (wanted == -1 && PyErr_Occurred())
        return NULL;
    if (wanted < 0 || wanted > self->size)
        return PyErr_Format(PyExc_ValueError, "size %zd out of range: the text has %zd characters", wanted, self->size);
    self->size = wanted;
    Py_RETURN_NONE;
}

/* view() -> memoryview: the text, without a copy */
static PyObject *text_view(Text *self, PyObject *Py_UNUSED(nothing)) { return PyMemoryView_FromObject((PyObject *)self); }

/* is_viewed() -> bool: whether there are views, so that nothing may be written */
RARE static PyObject *text_is_viewed(Text *self, PyObject *Py_UNUSED(nothing)) { return PyBool_FromLong(self->views); }

static int text_get_buffer(Text *self, Py_buffer *view, int flags)
{
    int failed = PyBuffer_FillInfo(view, (PyObject *)self, self->start ? self->start : "", self->size, 1, flags);
    self->views += !failed;
    return failed;
}

static void text_release_buffer(Text *self, Py_buffer *Py_UNUSED(view)) { self->views--; }

static Py_ssize_t text_length(Text *self) { return self->size; }

RARE static PyObject *text_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(names))
{
    PyObject *value_text, *field_text, *batch_body, *payload_text = Py_None;
    int has_content;
    if (!PyArg_ParseTuple(args, "OOOp|O", &value_text, &field_text, &batch_body, &has_content, &payload_text))
        return NULL;
    Text *self = (Text *)type->tp_alloc(type, 0);
    if (self) {
        self->value_text = Py_NewRef(value_text);
        self->field_text = Py_NewRef(field_text);
        self->batch_body = Py_NewRef(batch_body);
        self->payload_text = Py_NewRef(payload_text);
        self->has_content = has_content;
        self->second = -1;
    }
    return (PyObject *)self;
}

RARE static void text_dealloc(Text *self)
{
    PyMem_Free(self->start);
    PyMem_Free(self->places);
    Py_XDECREF(self->value_text);
    Py_XDECREF(self->field_text);
    Py_XDECREF(self->batch_body);
    Py_XDECREF(self->payload_text);
    Py_TYPE(self)->tp_free(self);
}

static PyMethodDef text_methods[] = {
    {"row", (PyCFunction)(void (*)(void))text_row, METH_FASTCALL, NULL},
    {"body", (PyCFunction)text_body, METH_VARARGS, NULL},
    {"place", (PyCFunction)text_place, METH_VARARGS, NULL},
    {"value", (PyCFunction)text_value, METH_O, NULL},
    {"write", (PyCFunction)text_write, METH_O, NULL},
    {"truncate", (PyCFunction)text_truncate, METH_O, NULL},
    {"view", (PyCFunction)text_view, METH_NOARGS, NULL},
    {"is_viewed", (PyCFunction)text_is_viewed, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PySequenceMethods text_sequence = {.sq_length = (lenfunc)text_length};
static PyBufferProcs text_buffer = {.bf_getbuffer = (getbufferproc)text_get_buffer, .bf_releasebuffer = (releasebufferproc)text_release_buffer};

static PyTypeObject TextType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "kafkawire.capture.jsonl.writer.Text",
    .tp_basicsize = sizeof(Text),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "A buffer of ASCII that rows, records and texts are added to.",
    .tp_new = text_new,
    .tp_dealloc = (destructor)text_dealloc,
    .tp_methods = text_methods,
    .tp_as_sequence = &text_sequence,
    .tp_as_buffer = &text_buffer,
};

static PyModuleDef module = {PyModuleDef_HEAD_INIT, .m_name = "kafkawire.capture.jsonl.writer", .m_size = -1};

/* Find the function of `castagnoli.c`, which an interpreted build and some processors do not have. */
RARE static int find_crc32c(void)
{
    PyObject *castagnoli = PyImport_ImportModule("kafkawire.records.castagnoli");
    PyObject *function = castagnoli ? PyObject_GetAttrString(castagnoli, "function") : NULL;
    if (function && PyCapsule_CheckExact(function))
        *(void **)&crc32c = PyCapsule_GetPointer(function, NULL);
    Py_XDECREF(castagnoli);
    Py_XDECREF(function);
    return function ? DONE : FAILED;
}

PyMODINIT_FUNC PyInit_writer(void)
{
#ifdef WIDE
    __builtin_cpu_init();
    has_wide = __builtin_cpu_supports("avx2") != 0;
#endif
    for (int i = 0; i < 100; i++) {
        pairs[2 * i] = (char)('0' + i / 10);
        pairs[2 * i + 1] = (char)('0' + i % 10);
    }
    for (int i = 0; i < 1 << 12; i++) {
        char couple[2] = {of_64[i >> 6], of_64[i & 63]};
        memcpy(couples + i, couple, 2);
    }
    for (int i = 32; i < 127; i++)
        is_plain[i] = i != '"' && i != '\\';
    if (PyType_Ready(&ProgramType) < 0 || PyType_Ready(&TextType) < 0)
        return NULL;
    if (find_crc32c() == FAILED)
        return NULL;
    PyObject *made = PyModule_Create(&module);
    if (made && (PyModule_AddObjectRef(made, "Program", (PyObject *)&ProgramType) < 0 || PyModule_AddObjectRef(made, "Text", (PyObject *)&TextType) < 0))
        Py_CLEAR(made);
    return made;
}
