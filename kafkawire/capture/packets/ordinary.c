/* Parses ordinary packets of a pcap: the fast version of `ordinary.py`, with the same results.

       Ethernet | Linux cooked | raw IP --> IPv4 | IPv6 --> TCP

   Nothing is read outside of a block's data. Sources: RFC 791, RFC 8200, RFC 9293. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

typedef const uint8_t *Bytes;

enum { OTHER, DECLINED, SEGMENT }; /* no segment | left to `parser` | a segment was added */
enum { ETHERNET = 1, COOKED = 113, COOKED_2 = 276, IPV4 = 0x0800, IPV6 = 0x86DD, TCP = 6, UDP = 17 };
enum { MAX_LENGTH = 1500, SNAP = 0xAAAA }; /* an EtherType up to this is the length of an 802.3 frame */
enum { PROTOCOLS4 = 8192, PROTOCOLS6 = 8224, PORTS = 8256, BITMAPS = 16448 }; /* bitmaps of `kinds.passed_over`, behind EtherTypes */
enum { KEY = 36, NUMBERS = 8, SECOND = 1000000000 };
enum { SYN = 2, OPTION_END = 0, OPTION_NOP = 1, OPTION_MSS = 2, WINDOW_SHIFT = 16 };

static const int links[] = {ETHERNET, 12, 14, 101, COOKED, COOKED_2};
static const int wireguard[] = {51820, 51871}; /* ports that both sides have */

#define IN(value, table) is_in(value, table, sizeof table / sizeof *table)

static int is_in(int value, const int *table, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (table[i] == value)
            return 1;
    return 0;
}

/* A packet, and where its segment goes. start, end: its captured bytes. stop: the end of the packet on the wire.
   passed_over: bitmaps. */
typedef struct {
    Bytes data, passed_over;
    int64_t start, end, stop, packet, time_ns;
    uint8_t *key;
    int64_t *numbers;
} Packet;

static inline uint32_t uint16(Bytes p) { return (uint32_t)p[0] << 8 | p[1]; }

static inline uint32_t uint32(Bytes p) { return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3]; }

static inline uint32_t uint32_of(Bytes p, int is_big)
{
    return is_big ? uint32(p) : (uint32_t)p[3] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[1] << 8 | p[0];
}

static inline uint64_t uint64(Bytes p) { return (uint64_t)uint32(p) << 32 | uint32(p + 4); }

/* Write an endpoint of a key: both halves of the address, and the port. */
static inline uint8_t *put_endpoint(uint8_t *out, uint64_t high, uint64_t low, Bytes port)
{
    uint16_t number = (uint16_t)uint16(port);
    memcpy(out, &high, 8);
    memcpy(out + 8, &low, 8);
    memcpy(out + 16, &number, 2);
    return out + 18;
}

/* Whether a bit of a bitmap is set. */
static inline int is_set(const Packet *packet, int start, int number)
{
    return packet->passed_over[start + (number >> 3)] >> (number & 7) & 1;
}

/* Whether a packet carries no TCP. start: of the bitmap of protocols. */
static int is_other(const Packet *packet, int start, int protocol, int64_t at)
{
    if (protocol != UDP)
        return is_set(packet, start, protocol);
    if (at + 8 > packet->end)
        return 0;
    int destination = (int)uint16(packet->data + at + 2);
    if (IN(destination, wireguard) && (int)uint16(packet->data + at) == destination)
        return 0;
    return !is_set(packet, PORTS, destination);
}

/* Return the maximum segment size among the options of a SYN; 0 if it has none. */
static int64_t mss_of(Bytes p, int64_t size)
{
    for (int64_t at = 0; at < size && p[at] != OPTION_END;) {
        if (p[at] == OPTION_NOP) {
            at++;
            continue;
        }
        if (at + 1 >= size || p[at + 1] < 2)
            return 0;
        if (p[at] == OPTION_MSS)
            return p[at + 1] == 4 && at + 4 <= size ? (int64_t)uint16(p + at + 2) : 0;
        at += p[at + 1];
    }
    return 0;
}

/* Add a segment without its key; DECLINED if its header is cut or malformed. */
static int add_tcp(Packet *packet, int64_t at, int64_t stop)
{
    Bytes p = packet->data + at;
    if (at + 20 > packet->end)
        return DECLINED;
    int words = p[12] >> 4;
    int64_t payload = at + words * 4;
    if (words < 5 || payload > stop)
        return DECLINED;
    int64_t size = stop - payload, captured = packet->end - payload;
    captured = captured < 0 ? 0 : captured < size ? captured : size;
    int64_t window = p[13] & SYN ? mss_of(p + 20, (payload < packet->end ? payload : packet->end) - at - 20) : uint16(p + 14);
    const int64_t row[NUMBERS] = {packet->packet, packet->time_ns, uint32(p + 4), uint32(p + 8), payload, captured, size, p[13] | window << WINDOW_SHIFT};
    memcpy(packet->numbers, row, sizeof row);
    return SEGMENT;
}

static int add_ip4(Packet *packet, int64_t at)
{
    Bytes p = packet->data + at;
    if (at + 20 > packet->end)
        return DECLINED;
    int64_t behind = at + (p[0] & 15) * 4, length = uint16(p + 2);
    int64_t stop = length ? at + length : packet->stop; /* 0: segmentation offload */
    if (p[0] < 0x45 || p[0] > 0x4F || stop < behind)
        return DECLINED;
    if (uint16(p + 6) & 0x3FFF)
        return DECLINED; /* a fragment */
    if (p[9] != TCP)
        return is_other(packet, PROTOCOLS4, p[9], behind) ? OTHER : DECLINED;
    int added = add_tcp(packet, behind, stop);
    if (added == SEGMENT) {
        const uint64_t mapped = 0xFFFF00000000u;
        uint8_t *next = put_endpoint(packet->key, 0, mapped | uint32(p + 12), packet->data + behind);
        put_endpoint(next, 0, mapped | uint32(p + 16), packet->data + behind + 2);
    }
    return added;
}

static int add_ip6(Packet *packet, int64_t at)
{
    Bytes p = packet->data + at;
    int64_t behind = at + 40;
    if (behind > packet->end || p[0] >> 4 != 6)
        return DECLINED;
    if (p[6] != TCP)
        return is_other(packet, PROTOCOLS6, p[6], behind) ? OTHER : DECLINED;
    int64_t length = uint16(p + 4);
    int added = add_tcp(packet, behind, length ? behind + length : packet->stop);
    if (added == SEGMENT) {
        uint8_t *next = put_endpoint(packet->key, uint64(p + 8), uint64(p + 16), packet->data + behind);
        put_endpoint(next, uint64(p + 24), uint64(p + 32), packet->data + behind + 2);
    }
    return added;
}

static int add_packet(Packet *packet, int link)
{
    int64_t at = packet->start;
    int kind;
    if (packet->stop == at && packet->end == at)
        return OTHER;
    if (link == ETHERNET || link == COOKED) {
        at += link == ETHERNET ? 14 : 16;
        if (at > packet->end)
            return DECLINED;
        kind = (int)uint16(packet->data + at - 2);
    } else if (link == COOKED_2) {
        at += 20;
        if (at > packet->end)
            return DECLINED;
        kind = (int)uint16(packet->data + at - 20);
    } else if (at >= packet->end)
        return DECLINED;
    else {
        int version = packet->data[at] >> 4;
        kind = version == 4 ? IPV4 : version == 6 ? IPV6 : -1;
    }
    if (kind == IPV4)
        return add_ip4(packet, at);
    if (kind == IPV6)
        return add_ip6(packet, at);
    if (link == ETHERNET && kind >= 0 && kind <= MAX_LENGTH) { /* LLC; SNAP may be in front of IP */
        if (at + 3 > packet->end)
            return DECLINED;
        int access = (int)uint16(packet->data + at);
        return access == SNAP || access == 0x0606 ? DECLINED : OTHER;
    }
    return kind >= 0 && is_set(packet, 0, kind) ? OTHER : DECLINED;
}

/* The format of packet headers, and where they are. */
typedef struct {
    int64_t size, nanoseconds, first;
    int link, is_big;
    Bytes passed_over;
} Shape;

/* Add the segments of a block; returns how many, -1 if a packet is not ordinary, -2 for an exception. */
static Py_ssize_t add_packets(PyObject *data, PyObject *offsets, const Shape *shape, uint8_t *keys, int64_t *numbers)
{
    Packet packet = {.data = (Bytes)PyBytes_AS_STRING(data), .passed_over = shape->passed_over, .key = keys, .numbers = numbers};
    int64_t whole = PyBytes_GET_SIZE(data);
    Py_ssize_t segments = 0, count = PyBytes_GET_SIZE(offsets) / 8;
    for (Py_ssize_t i = 0; i < count; i++) {
        int64_t start;
        memcpy(&start, PyBytes_AS_STRING(offsets) + i * 8, 8);
        if (start < 0 || shape->size < 16 || start > whole - shape->size)
            goto outside;
        Bytes p = packet.data + start;
        packet.start = start + shape->size;
        packet.end = packet.start + uint32_of(p + 8, shape->is_big);
        packet.stop = packet.start + uint32_of(p + 12, shape->is_big);
        packet.packet = shape->first + i;
        packet.time_ns = (int64_t)uint32_of(p, shape->is_big) * SECOND + uint32_of(p + 4, shape->is_big) * shape->nanoseconds;
        if (packet.end > whole)
            goto outside;
        int added = add_packet(&packet, shape->link);
        if (added == DECLINED)
            return -1;
        if (added == SEGMENT) {
            packet.key += KEY;
            packet.numbers += NUMBERS;
            segments++;
        }
    }
    return segments;
outside:
    PyErr_SetString(PyExc_IndexError, "packet outside of the data");
    return -2;
}

/* ordinary_segments(data, offsets, header bytes, nanoseconds, is big, link, first, passed over) -> (keys, numbers) | None */
static PyObject *ordinary_segments(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *data, *offsets, *passed_over;
    long long size, nanoseconds, first;
    Shape shape;
    if (!PyArg_ParseTuple(args, "SSLLpiLS", &data, &offsets, &size, &nanoseconds, &shape.is_big, &shape.link, &first, &passed_over))
        return NULL;
    if (PyBytes_GET_SIZE(passed_over) != BITMAPS) {
        PyErr_SetString(PyExc_ValueError, "bitmaps of another size");
        return NULL;
    }
    shape.passed_over = (Bytes)PyBytes_AS_STRING(passed_over);
    shape.size = size;
    shape.nanoseconds = nanoseconds;
    shape.first = first;
    if (!IN(shape.link, links) || !PY_LITTLE_ENDIAN)
        Py_RETURN_NONE;
    Py_ssize_t count = PyBytes_GET_SIZE(offsets) / 8;
    PyObject *keys = PyBytes_FromStringAndSize(NULL, count * KEY);
    PyObject *numbers = PyBytes_FromStringAndSize(NULL, count * NUMBERS * 8);
    Py_ssize_t found = -2;
    if (keys && numbers)
        found = add_packets(data, offsets, &shape, (uint8_t *)PyBytes_AS_STRING(keys), (int64_t *)PyBytes_AS_STRING(numbers));
    if (found >= 0 && found < count)
        if (_PyBytes_Resize(&keys, found * KEY) < 0 || _PyBytes_Resize(&numbers, found * NUMBERS * 8) < 0)
            found = -2;
    if (found >= 0)
        return Py_BuildValue("NN", keys, numbers);
    Py_XDECREF(keys);
    Py_XDECREF(numbers);
    if (found == -1)
        Py_RETURN_NONE;
    return NULL;
}

static PyMethodDef methods[] = {
    {"ordinary_segments", ordinary_segments, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef module = {PyModuleDef_HEAD_INIT, .m_name = "kafkawire.capture.packets.ordinary", .m_methods = methods};

PyMODINIT_FUNC PyInit_ordinary(void) { return PyModuleDef_Init(&module); }
