/* How compiled modules call `shared.c`: as C functions, without making Python objects of their arguments.

   `hatch_build.py` names the functions below to the compiler; `shared.c` is a module of its own, so that it can be
   tested, and its functions are found in a capsule at the first call. */

#ifndef KAFKAWIRE_SHARED_H
#define KAFKAWIRE_SHARED_H

#include <Python.h>
#include <stdint.h>

#define KAFKAWIRE_SHARED "kafkawire.primitives.shared._functions"

typedef PyObject *(*KafkawireShare)(PyObject *data, int64_t p, int64_t size);

typedef struct {
    KafkawireShare text, int32_items;
} KafkawireShared;

#ifndef KAFKAWIRE_SHARED_SOURCE
static const KafkawireShared *kafkawire_shared;

static inline const KafkawireShared *Kafkawire_shared(void)
{
    if (!kafkawire_shared)
        kafkawire_shared = (const KafkawireShared *)PyCapsule_Import(KAFKAWIRE_SHARED, 0);
    return kafkawire_shared;
}

static inline PyObject *Kafkawire_shared_text(PyObject *data, int64_t p, int64_t size)
{
    const KafkawireShared *shared = Kafkawire_shared();
    return shared ? shared->text(data, p, size) : NULL;
}

static inline PyObject *Kafkawire_shared_int32_items(PyObject *data, int64_t p, int64_t size)
{
    const KafkawireShared *shared = Kafkawire_shared();
    return shared ? shared->int32_items(data, p, size) : NULL;
}
#endif

#endif
