/* Reads the bytes of bodies by programs: what the C modules share that do without the decoder.

   Nothing is read outside of the given bytes; what is not simple (a varint too long, a length out of bounds, more
   elements than allowed) is declined, and left to the decoder.

       Program: the fields of a struct in wire order     Cursor: a body that is being read */

#ifndef KAFKAWIRE_CAPTURE_WIRE_H
#define KAFKAWIRE_CAPTURE_WIRE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

typedef const uint8_t *Bytes;

enum { FAILED = -1, DECLINED = 0, DONE = 1 }; /* an exception is set | left to Python | read or written */

#define TRY(call) \
    do { \
        int got = call; \
        if (got != DONE) \
            return got; \
    } while (0)

/* -- programs */

struct Program;

/* A field. op, role, column, size: as the module numbers them. lead, name: for text; NULL if there is none. */
typedef struct {
    struct Program *inner;
    PyObject *lead, *name;
    int32_t size;
    int8_t op, column, role, is_array, is_nullable;
} Step;

/* more: of the module, allocated by PyMem; flag: of the module. */
typedef struct Program {
    PyObject_VAR_HEAD
    int is_flexible, flag;
    void *more;
    Step steps[];
} Program;

static PyTypeObject ProgramType;

static Program *new_program(PyTypeObject *type, Py_ssize_t count, int is_flexible)
{
    Program *made = (Program *)type->tp_alloc(type, count);
    if (made) {
        memset(made->steps, 0, (size_t)count * sizeof(Step));
        made->is_flexible = is_flexible;
        made->flag = 0;
        made->more = NULL;
    }
    return made;
}

static void program_dealloc(Program *self)
{
    for (Py_ssize_t i = 0; i < Py_SIZE(self); i++) {
        Py_XDECREF(self->steps[i].lead);
        Py_XDECREF(self->steps[i].name);
        Py_XDECREF((PyObject *)self->steps[i].inner);
    }
    PyMem_Free(self->more);
    Py_TYPE(self)->tp_free(self);
}

/* Define the type: `module` is its name, `make` its tp_new. */
#define PROGRAM_TYPE(module, make) \
    static PyTypeObject ProgramType = { \
        PyVarObject_HEAD_INIT(NULL, 0).tp_name = module ".Program", \
        .tp_basicsize = sizeof(Program), \
        .tp_itemsize = sizeof(Step), \
        .tp_flags = Py_TPFLAGS_DEFAULT, \
        .tp_doc = "The fields of a struct in wire order.", \
        .tp_new = make, \
        .tp_dealloc = (destructor)program_dealloc, \
    }

/* -- values */

static inline int64_t big_endian(Bytes p, int size)
{
    uint64_t value = 0;
    switch (size) {
    case 1:
        return (int8_t)p[0];
    case 2:
        return (int16_t)((uint16_t)p[0] << 8 | p[1]);
    case 4:
        return (int32_t)((uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3]);
    default:
        for (int i = 0; i < 8; i++)
            value = value << 8 | p[i];
        return (int64_t)value;
    }
}

/* elements: how many elements of arrays are still allowed. */
typedef struct {
    Bytes at, end;
    int64_t elements;
    int is_flexible;
} Cursor;

/* Read the length of a string (`size` 2) or of anything else (4): -1 for null. */
static inline int length(Cursor *in, int size, int64_t *found)
{
    if (!in->is_flexible) {
        if (in->end - in->at < size)
            return DECLINED;
        *found = big_endian(in->at, size);
        in->at += size;
        return *found < -1 ? DECLINED : DONE;
    }
    uint64_t value = 0;
    for (int shift = 0; shift < 35 && in->at < in->end; shift += 7) {
        uint8_t byte = *in->at++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *found = (int64_t)value - 1;
            return value > 0x80000000u || (size == 2 && *found > INT16_MAX) ? DECLINED : DONE;
        }
    }
    return DECLINED;
}

static inline int skip(Cursor *in, int64_t size)
{
    if (size > in->end - in->at)
        return DECLINED;
    in->at += size;
    return DONE;
}

/* Take the elements of an array: it is an object, as a struct is (Limits). */
static inline int take_elements(Cursor *in, int64_t count)
{
    in->elements -= count + 1;
    return count > in->end - in->at || in->elements < 0 ? DECLINED : DONE;
}

/* Read the empty tagged fields at the end of a struct. */
static inline int no_tags(Cursor *in)
{
    if (!in->is_flexible)
        return DONE;
    if (in->at == in->end || *in->at)
        return DECLINED;
    in->at++;
    return DONE;
}

#endif
