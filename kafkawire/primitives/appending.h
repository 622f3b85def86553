/* Appends short texts and short lists of int32 to a body: the compiled version of `appending.py`.

   `hatch_build.py` names the functions below to the compiler, which inlines them into `writer.py`. They write into the
   buffer of librt's BytesWriter as mypyc's own functions do. */

#ifndef KAFKAWIRE_APPENDING_H
#define KAFKAWIRE_APPENDING_H

#include <CPy.h>
#include <string.h>

#include "byteswriter_extra_ops.h"

#define KAFKAWIRE_LONGEST 126 /* bytes or items: with a length, plus one, of one byte as a varint */
#define KAFKAWIRE_FAILED 2    /* mypyc's bool of a function that raised */

static inline char Kafkawire_append_text(PyObject *buffer, PyObject *text, char flexible)
{
    if (!PyUnicode_IS_COMPACT_ASCII(text) || PyUnicode_GET_LENGTH(text) > KAFKAWIRE_LONGEST)
        return 0;
    BytesWriterObject *writer = (BytesWriterObject *)buffer;
    Py_ssize_t size = PyUnicode_GET_LENGTH(text);
    if (!CPyBytesWriter_EnsureSize(writer, size + 2))
        return KAFKAWIRE_FAILED;
    char *at = writer->buf + writer->len;
    if (flexible) {
        *at++ = (char)(size + 1);
    } else {
        *at++ = 0;
        *at++ = (char)size;
    }
    memcpy(at, PyUnicode_1BYTE_DATA(text), (size_t)size);
    writer->len = at + size - writer->buf;
    return 1;
}

static inline char Kafkawire_append_int32s(PyObject *buffer, PyObject *values, char flexible)
{
    Py_ssize_t count = PyList_GET_SIZE(values);
    if (count > KAFKAWIRE_LONGEST)
        return 0;
    BytesWriterObject *writer = (BytesWriterObject *)buffer;
    if (!CPyBytesWriter_EnsureSize(writer, (count + 1) * 4))
        return KAFKAWIRE_FAILED;
    Py_ssize_t before = writer->len;
    if (flexible)
        writer->buf[writer->len++] = (char)(count + 1);
    else
        BytesWriter_WriteI32BEUnsafe(writer, (int32_t)count);
    for (Py_ssize_t i = 0; i < count; i++) {
        int32_t number = CPyLong_AsInt32(PyList_GET_ITEM(values, i));
        if (number == CPY_LL_INT_ERROR && PyErr_Occurred()) {
            PyErr_Clear();
            writer->len = before;
            return 0;
        }
        BytesWriter_WriteI32BEUnsafe(writer, number);
    }
    return 1;
}

#endif
