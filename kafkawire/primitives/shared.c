/* Shares values that repeat in structs and messages: the quick version of `shared.py`.

   Shared values are read-only, so sharing affects memory and time only. A table of fixed size caches values; a
   value is found by all of its bytes, read as words, so that a lookup creates no objects. A value is stored when it
   comes for the second time, for most values of varied traffic do not: until then it costs a hash of four bytes.

       size 4-7:  first = first 4 bytes, last = last 4        slot of a table, hash = mix(size, words)
       size 8-32: first = first 8, last = last 8; beyond 16, second and third = what lies between, overlapping */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <string.h>

#define KAFKAWIRE_SHARED_SOURCE
#include "shared.h"

#if defined(__GNUC__)
#define INLINE static inline __attribute__((always_inline))
#else
#define INLINE static inline
#endif

#define SMALLEST 4
#define LARGEST 32 /* the sizes of cached values: a name, or up to eight int32 */
#define SLOTS 1024

typedef struct {
    uint64_t first, second, third, last;
} Words;

typedef struct {
    Words words;
    int64_t size;
    PyObject *value;
} Entry;

typedef struct {
    uint32_t latest[SLOTS]; /* the hash of the value that came last to a slot, stored or not */
    Entry entries[SLOTS];
} Table;

static Table texts, lists;

INLINE uint64_t load8(const uint8_t *p)
{
    uint64_t word;
    memcpy(&word, p, 8);
    return word;
}

INLINE uint64_t load4(const uint8_t *p)
{
    uint32_t word;
    memcpy(&word, p, 4);
    return word;
}

INLINE Words words_of(const uint8_t *p, int64_t size)
{
    const uint8_t *end = p + size;
    Words words = {0, 0, 0, 0};
    if (size < 8) {
        words.first = load4(p);
        words.last = load4(end - 4);
        return words;
    }
    words.first = load8(p);
    words.last = load8(end - 8);
    if (size > 16) {
        words.second = load8(p + 8);
        words.third = load8(end - 16);
    }
    return words;
}

/* random odd numbers; the last two steps spread what differs in any bit over the high bits */
INLINE uint64_t hash_of(Words words, int64_t size)
{
    uint64_t sum = (words.first + (uint64_t)size) * 0x9E3779B97F4A7C15u + words.second * 0xC2B2AE3D27D4EB4Fu +
                   words.third * 0x165667B19E3779F9u + words.last * 0xD6E8FEB86659FD93u;
    return (sum ^ sum >> 32) * 0x9FB21C651E98DF25u;
}

/* The entry of a value that comes again, as far as its hash tells; NULL for one that does not. */
INLINE Entry *entry_of_repeated(Table *table, uint64_t hash)
{
    uint64_t slot = hash >> 54;
    if (table->latest[slot] == (uint32_t)hash)
        return &table->entries[slot];
    table->latest[slot] = (uint32_t)hash;
    return NULL;
}

INLINE int holds(const Entry *entry, Words words, int64_t size)
{
    return entry->size == size && entry->words.first == words.first && entry->words.last == words.last &&
           entry->words.second == words.second && entry->words.third == words.third;
}

/* Put a value into a table; the one that was there may be freed, which runs no code of others. */
INLINE void store(Entry *entry, Words words, int64_t size, PyObject *value)
{
    PyObject *before = entry->value;
    Py_INCREF(value);
    *entry = (Entry){words, size, value};
    Py_XDECREF(before);
}

INLINE const uint8_t *bytes_at(PyObject *data, int64_t p, int64_t size)
{
    if (p < 0 || size < 0 || size > PyBytes_GET_SIZE(data) - p) {
        PyErr_SetString(PyExc_IndexError, "outside of the data");
        return NULL;
    }
    return (const uint8_t *)PyBytes_AS_STRING(data) + p;
}

static PyObject *shared_text(PyObject *data, int64_t p, int64_t size)
{
    const uint8_t *at = bytes_at(data, p, size);
    if (!at)
        return NULL;
    if (size < SMALLEST || size > LARGEST)
        return PyUnicode_DecodeUTF8((const char *)at, size, NULL);
    Words words = words_of(at, size);
    Entry *entry = entry_of_repeated(&texts, hash_of(words, size));
    if (entry && holds(entry, words, size))
        return Py_NewRef(entry->value);
    PyObject *text = PyUnicode_DecodeUTF8((const char *)at, size, NULL);
    if (text && entry)
        store(entry, words, size, text);
    return text;
}

/* -- lists that cannot be changed

   They are not tracked by the cyclic GC: integers cannot be part of a cycle. Their items are allocated as those of any
   list: `list.append` called by its name still finds what it expects. */

PyDoc_STRVAR(shared_ints_doc,
             "A read-only list of integers that other structs may share.\n\n"
             "It compares, prints and iterates as any list.\n"
             "The field that holds it can be set to a list of its own: `p.isr_nodes = [*p.isr_nodes, 4]`.");

static PyTypeObject SharedInts;

static PyObject *refused(void)
{
    PyErr_SetString(PyExc_TypeError, "a decoded list of integers may be shared with other structs and cannot be changed: "
                                     "set the field to a list of its own");
    return NULL;
}

static PyObject *refuse(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(args), PyObject *Py_UNUSED(named)) { return refused(); }

static PyObject *refuse_concat(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(other)) { return refused(); }

static PyObject *refuse_repeat(PyObject *Py_UNUSED(self), Py_ssize_t Py_UNUSED(times)) { return refused(); }

static int refuse_item(PyObject *Py_UNUSED(self), Py_ssize_t Py_UNUSED(at), PyObject *Py_UNUSED(value))
{
    refused();
    return -1;
}

static int refuse_subscript(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(at), PyObject *Py_UNUSED(value))
{
    refused();
    return -1;
}

static PyObject *reduce(PyObject *self, PyObject *Py_UNUSED(args))
{
    return Py_BuildValue("O(N)", &SharedInts, PySequence_List(self));
}

static int traverse(PyObject *self, visitproc visit, void *arg) { return PyList_Type.tp_traverse(self, visit, arg); }

static void dealloc(PyObject *self)
{
    PyListObject *list = (PyListObject *)self;
    if (list->ob_item) {
        for (Py_ssize_t i = Py_SIZE(list); --i >= 0;)
            Py_XDECREF(list->ob_item[i]);
        PyMem_Free(list->ob_item);
    }
    PyObject_Free(self);
}

#define REFUSED(name) {name, (PyCFunction)(void (*)(void))refuse, METH_VARARGS | METH_KEYWORDS, NULL}

static PyMethodDef shared_ints_methods[] = {
    REFUSED("append"),
    REFUSED("extend"),
    REFUSED("insert"),
    REFUSED("remove"),
    REFUSED("pop"),
    REFUSED("clear"),
    REFUSED("sort"),
    REFUSED("reverse"),
    {"__reduce__", reduce, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PySequenceMethods shared_ints_sequence = {
    .sq_ass_item = refuse_item,
    .sq_inplace_concat = refuse_concat,
    .sq_inplace_repeat = refuse_repeat,
};

static PyMappingMethods shared_ints_mapping = {.mp_ass_subscript = refuse_subscript};

static PyTypeObject SharedInts = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "kafkawire.primitives.shared.SharedInts",
    .tp_doc = shared_ints_doc,
    .tp_base = &PyList_Type,
    .tp_basicsize = sizeof(PyListObject),
    .tp_flags = Py_TPFLAGS_DEFAULT, /* no HAVE_GC, and a tp_traverse, without which it would be inherited */
    .tp_traverse = traverse,
    .tp_dealloc = dealloc,
    .tp_alloc = PyType_GenericAlloc,
    .tp_free = PyObject_Free,
    .tp_as_sequence = &shared_ints_sequence,
    .tp_as_mapping = &shared_ints_mapping,
    .tp_methods = shared_ints_methods,
};

INLINE PyObject *int32_at(const uint8_t *p)
{
    uint32_t value = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
    return PyLong_FromLong((int32_t)value);
}

static PyObject *new_shared_ints(const uint8_t *at, Py_ssize_t count)
{
    PyListObject *list = PyObject_New(PyListObject, &SharedInts);
    if (!list)
        return NULL;
    Py_SET_SIZE(list, 0);
    list->allocated = 0;
    list->ob_item = count ? PyMem_Malloc((size_t)count * sizeof(PyObject *)) : NULL;
    if (count && !list->ob_item) {
        Py_DECREF(list);
        return PyErr_NoMemory();
    }
    list->allocated = count;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *number = int32_at(at + i * 4);
        if (!number) {
            Py_DECREF(list);
            return NULL;
        }
        list->ob_item[i] = number;
        Py_SET_SIZE(list, i + 1);
    }
    return (PyObject *)list;
}

static PyObject *long_list(const uint8_t *at, Py_ssize_t count)
{
    PyObject *list = PyList_New(count);
    for (Py_ssize_t i = 0; list && i < count; i++) {
        PyObject *number = int32_at(at + i * 4);
        if (!number)
            Py_CLEAR(list);
        else
            PyList_SET_ITEM(list, i, number);
    }
    return list;
}

static PyObject *shared_int32_items(PyObject *data, int64_t p, int64_t size)
{
    const uint8_t *at = bytes_at(data, p, size);
    if (!at)
        return NULL;
    if (size < SMALLEST || size > LARGEST)
        return long_list(at, (Py_ssize_t)(size / 4));
    Words words = words_of(at, size);
    Entry *entry = entry_of_repeated(&lists, hash_of(words, size));
    if (entry && holds(entry, words, size))
        return Py_NewRef(entry->value);
    PyObject *list = new_shared_ints(at, (Py_ssize_t)(size / 4));
    if (list && entry)
        store(entry, words, size, list);
    return list;
}

/* -- as a module */

static PyObject *called(KafkawireShare share, PyObject *const *args, Py_ssize_t count)
{
    if (count != 3 || !PyBytes_Check(args[0]))
        return PyErr_Format(PyExc_TypeError, "bytes, a position and a size expected");
    long long p = PyLong_AsLongLong(args[1]), size = PyLong_AsLongLong(args[2]);
    return PyErr_Occurred() ? NULL : share(args[0], p, size);
}

static PyObject *call_text(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    return called(shared_text, args, count);
}

static PyObject *call_int32_items(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    return called(shared_int32_items, args, count);
}

static PyMethodDef methods[] = {
    {"shared_text", (PyCFunction)(void (*)(void))call_text, METH_FASTCALL, NULL},
    {"shared_int32_items", (PyCFunction)(void (*)(void))call_int32_items, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

static const KafkawireShared functions = {shared_text, shared_int32_items};

static PyModuleDef module = {
    PyModuleDef_HEAD_INIT, .m_name = "kafkawire.primitives.shared", .m_size = -1, .m_methods = methods};

/* Add an object to the module, and let go of it. */
static int added(PyObject *made, const char *name, PyObject *value)
{
    int failed = !value || PyModule_AddObjectRef(made, name, value) < 0;
    Py_XDECREF(value);
    return !failed;
}

PyMODINIT_FUNC PyInit_shared(void)
{
    if (PyType_Ready(&SharedInts) < 0)
        return NULL;
    PyObject *made = PyModule_Create(&module);
    if (made && (!added(made, "SharedInts", Py_NewRef((PyObject *)&SharedInts)) || !added(made, "NO_INTS", new_shared_ints(NULL, 0)) ||
                 !added(made, "_functions", PyCapsule_New((void *)&functions, KAFKAWIRE_SHARED, NULL))))
        Py_CLEAR(made);
    return made;
}
