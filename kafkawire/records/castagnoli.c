/* CRC-32C by carry-less multiplication: 256 bytes a turn on processors that multiply in 512-bit registers, 128 on those
   that multiply in 256-bit registers.

   Where the processor cannot (`available()` is False), nothing else here may be called, and `checksum` uses the
   package crc32c, whose import takes more than reading a small capture. `castagnoli.py` is the same module where no
   compiler made it.

   A CRC is the message as a polynomial, modulo P. So the message may be replaced by any shorter one that leaves the
   same rest: 16 bytes H:L (64 bits each) that stand T bits before others are added to those as H*x^(T+64) + L*x^T, whose
   powers of x are constants modulo P. What is left in the end, 64 bytes, goes through the crc32 instruction.

       a b c d | e f g h | ...      each 64 bytes, as four lanes of 16
       `-------^ times x^2048: a is added to e, b to f, ...

   Bits are reflected in CRC-32C: the lowest bit of the first byte is the highest power. A product of two reflected
   numbers comes out one bit short, so the constants are one power less. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>

#define POLYNOMIAL 0x82f63b78u
/* crc32 is a feature of its own in Clang from 14 on, and a part of sse4.2 elsewhere */
#if defined(__clang__) && __clang_major__ >= 14
#define SSE42 "sse4.2,crc32"
#else
#define SSE42 "sse4.2"
#endif
#define WIDE __attribute__((target("avx512f,vpclmulqdq," SSE42)))
#define NARROW __attribute__((target("avx2,vpclmulqdq," SSE42)))

typedef const uint8_t *Bytes;

/* What takes lanes 256, 128, 64 and 32 bytes on: for the low and the high half. */
static uint64_t far[2], middle[2], near[2], next[2];
static int wide; /* whether there are 512-bit registers */

/* Compute x^n modulo P, in the high half of a reflected 64-bit number. */
static uint64_t power(int n)
{
    uint32_t value = 0x80000000u;
    while (n-- > 0)
        value = value >> 1 ^ (value & 1 ? POLYNOMIAL : 0);
    return (uint64_t)value << 32;
}

static int probe(void)
{
    __builtin_cpu_init();
    wide = __builtin_cpu_supports("avx512f");
    return (wide || __builtin_cpu_supports("avx2")) && __builtin_cpu_supports("vpclmulqdq") &&
           __builtin_cpu_supports("sse4.2");
}

static void prepare(void)
{
    far[0] = power(2048 + 63);
    far[1] = power(2048 - 1);
    near[0] = power(512 + 63);
    near[1] = power(512 - 1);
    next[0] = power(256 + 63);
    next[1] = power(256 - 1);
    middle[0] = power(1024 + 63);
    middle[1] = power(1024 - 1);
}

/* Take the lanes of `value` on and add `next`. */
WIDE static inline __m512i fold(__m512i value, __m512i by, __m512i next)
{
    __m512i low = _mm512_clmulepi64_epi128(value, by, 0x00), high = _mm512_clmulepi64_epi128(value, by, 0x11);
    return _mm512_ternarylogic_epi64(low, high, next, 0x96); /* the exclusive or of three */
}

NARROW static uint64_t by_instruction(uint64_t crc, Bytes p, size_t size)
{
    for (; size >= 8; p += 8, size -= 8) {
        uint64_t word;
        memcpy(&word, p, 8);
        crc = _mm_crc32_u64(crc, word);
    }
    while (size--)
        crc = _mm_crc32_u8((uint32_t)crc, *p++);
    return crc;
}

/* Do the 64-byte blocks of at least 256 bytes; return how many bytes that were. */
WIDE static size_t by_wide_folding(uint64_t *crc, Bytes p, size_t size)
{
    size_t left = size - 256;
    __m512i by = _mm512_broadcast_i32x4(_mm_loadu_si128((const void *)far));
    __m512i a = _mm512_loadu_si512(p), b = _mm512_loadu_si512(p + 64);
    __m512i c = _mm512_loadu_si512(p + 128), d = _mm512_loadu_si512(p + 192);
    a = _mm512_xor_si512(a, _mm512_zextsi128_si512(_mm_cvtsi64_si128((int64_t)*crc)));
    for (p += 256; left >= 256; p += 256, left -= 256) {
        a = fold(a, by, _mm512_loadu_si512(p));
        b = fold(b, by, _mm512_loadu_si512(p + 64));
        c = fold(c, by, _mm512_loadu_si512(p + 128));
        d = fold(d, by, _mm512_loadu_si512(p + 192));
    }
    by = _mm512_broadcast_i32x4(_mm_loadu_si128((const void *)near));
    a = fold(fold(fold(a, by, b), by, c), by, d);
    for (; left >= 64; p += 64, left -= 64)
        a = fold(a, by, _mm512_loadu_si512(p));
    uint8_t rest[64];
    _mm512_storeu_si512(rest, a);
    *crc = by_instruction(0, rest, 64);
    return size - left;
}

/* The same in registers of two lanes. */
NARROW static inline __m256i fold_two(__m256i value, __m256i by, __m256i next)
{
    __m256i low = _mm256_clmulepi64_epi128(value, by, 0x00), high = _mm256_clmulepi64_epi128(value, by, 0x11);
    return _mm256_xor_si256(_mm256_xor_si256(low, high), next);
}

NARROW static inline __m256i two_lanes(Bytes p)
{
    return _mm256_loadu_si256((const void *)p);
}

NARROW static inline __m256i both_lanes(const uint64_t by[2])
{
    return _mm256_broadcastsi128_si256(_mm_loadu_si128((const void *)by));
}

/* Do the 128-byte blocks of at least 256 bytes; return how many bytes that were. */
NARROW static size_t by_narrow_folding(uint64_t *crc, Bytes p, size_t size)
{
    size_t left = size - 128;
    __m256i by = both_lanes(middle);
    __m256i a = two_lanes(p), b = two_lanes(p + 32), c = two_lanes(p + 64), d = two_lanes(p + 96);
    a = _mm256_xor_si256(a, _mm256_zextsi128_si256(_mm_cvtsi64_si128((int64_t)*crc)));
    for (p += 128; left >= 128; p += 128, left -= 128) {
        a = fold_two(a, by, two_lanes(p));
        b = fold_two(b, by, two_lanes(p + 32));
        c = fold_two(c, by, two_lanes(p + 64));
        d = fold_two(d, by, two_lanes(p + 96));
    }
    by = both_lanes(next);
    a = fold_two(fold_two(fold_two(a, by, b), by, c), by, d);
    uint8_t rest[32];
    _mm256_storeu_si256((void *)rest, a);
    *crc = by_instruction(0, rest, 32);
    return size - left;
}

static uint32_t crc32c_of(uint32_t after, Bytes p, size_t size)
{
    uint64_t crc = ~after;
    size_t done = size < 256 ? 0 : wide ? by_wide_folding(&crc, p, size) : by_narrow_folding(&crc, p, size);
    return ~(uint32_t)by_instruction(crc, p + done, size - done);
}

#else
static int probe(void) { return 0; }
static void prepare(void) {}
static uint32_t crc32c_of(uint32_t after, const uint8_t *Py_UNUSED(p), size_t Py_UNUSED(size)) { return after; }
#endif

static int usable;

static PyObject *available(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
    return PyBool_FromLong(usable);
}

/* crc32c(data: bytes, start: int, end: int, after: int) -> int */
static PyObject *crc32c(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    if (count != 4 || !PyBytes_Check(args[0]))
        return PyErr_Format(PyExc_TypeError, "crc32c takes bytes, start, end and what is before");
    Py_ssize_t start = PyLong_AsSsize_t(args[1]), end = PyLong_AsSsize_t(args[2]);
    unsigned long after = PyLong_AsUnsignedLong(args[3]);
    if (PyErr_Occurred())
        return NULL;
    if (start < 0 || start > end || end > PyBytes_GET_SIZE(args[0]))
        return PyErr_Format(PyExc_ValueError, "bytes %zd to %zd", start, end);
    if (!usable)
        return PyErr_Format(PyExc_RuntimeError, "this processor does not multiply so");
    const uint8_t *data = (const uint8_t *)PyBytes_AS_STRING(args[0]);
    return PyLong_FromUnsignedLong(crc32c_of((uint32_t)after, data + start, (size_t)(end - start)));
}

/* function: a capsule of `crc32c_of` for other C modules; None if it may not be called. */
static int offer(PyObject *module)
{
    PyObject *function = usable ? PyCapsule_New((void *)crc32c_of, NULL, NULL) : Py_NewRef(Py_None);
    int made = function ? PyModule_AddObjectRef(module, "function", function) : -1;
    Py_XDECREF(function);
    return made;
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, (void *)offer}, {0, NULL}};

static PyMethodDef methods[] = {
    {"available", available, METH_NOARGS, NULL},
    {"crc32c", (PyCFunction)(void (*)(void))crc32c, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "kafkawire.records.castagnoli",
    .m_methods = methods,
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit_castagnoli(void)
{
    usable = probe();
    prepare();
    return PyModuleDef_Init(&module);
}
