/* Reads what tables need of the bodies of messages, and merges partitions into rows: the C version of `blocks.py`.

   Blocks and rows equal those of the Python version; a body that is not simple is declined, and left to the
   decoder. Nothing is read outside of the given bytes.

       Program: the fields of a struct in wire order     Reader: body --Program--> Block
       Block:   entities and partitions of one message   Rows:   blocks of an exchange --by partition--> rows
                                                         Bodies: blocks of exchanges --> lists of what they show */

#include "../../wire.h"
#include <structmember.h>

#if !PY_LITTLE_ENDIAN
#error "only little-endian machines are supported"
#endif

#define COLUMNS 19 /* of a row, from `request_offset` on */
#define FEW 8      /* rows or entities of an exchange that are searched without a table */
#define MOST_RESERVED 1024 /* entries that memory is allocated for before they are read */
#define LOG_OVERHEAD 12
#define TO_MAGIC 17
#define SMALLEST_BATCH 14
#define BATCH_HEADER 61
#define NO_SESSION 2 /* of `in_session`: null */
#define HEADERS 3    /* fields of a Fetch outside its partitions */
#define NO_NUMBER (-((long long)1 << 40)) /* as `body_facts.NONE` */
#define MAX_NUMBERS 8 /* of a body */

/* as `programs.py` numbers them: how a field is read, and what it identifies */
enum { SKIP, STRING, BYTES, ITEMS, STRINGS, BLOBS, STRUCTS, GROUP, NAME, ID, PARTITIONS, NUMBERS, NUMBER, INTEGER, TEXT, RECORDS, HEADER, NO_STRUCTS, SCALAR };
enum { NO_ROLE, TOPIC, GROUP_ID, TRANSACTIONAL_ID, TOPIC_ID, ERROR_CODE, FIRST_NUMBER, END_OF_ROLES = FIRST_NUMBER + MAX_NUMBERS };

/* as `blocks.py` has them: what is wanted of a body */
enum { ENTITIES = 1, PARTITION_VALUES = 2, FIELDS = 4 };

/* -- programs */

typedef struct {
    int64_t number;
    int8_t column, is_set, is_null;
} Default;

/* The columns of a partition that are not on the wire. */
typedef struct {
    int count;
    Default each[COLUMNS];
} Defaults;

static int read_defaults(Program *self, PyObject *defaults)
{
    Py_ssize_t count = PyTuple_GET_SIZE(defaults);
    if (!count)
        return DONE;
    if (count > COLUMNS) {
        PyErr_SetString(PyExc_ValueError, "too many defaults");
        return FAILED;
    }
    Defaults *made = self->more = PyMem_Calloc(1, sizeof *made);
    if (!made) {
        PyErr_NoMemory();
        return FAILED;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        int column, is_set;
        PyObject *value;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(defaults, i), "iOp", &column, &value, &is_set))
            return FAILED;
        if (column < 0 || column >= COLUMNS) {
            PyErr_Format(PyExc_ValueError, "invalid column %d", column);
            return FAILED;
        }
        int64_t number = value == Py_None ? 0 : PyLong_AsLongLong(value);
        if (number == -1 && PyErr_Occurred())
            return FAILED;
        made->each[made->count++] = (Default){number, (int8_t)column, (int8_t)is_set, value == Py_None};
    }
    return DONE;
}

/* Whether a step can be run: the sizes and columns of numbers, the roles of strings and of numbers. */
static int is_valid(int op, int size, int column, int role)
{
    int is_value = op == INTEGER || op == TEXT || op == RECORDS;
    int is_number = op == INTEGER || op == HEADER || op == SCALAR;
    int is_text = op == STRING || op == STRINGS || op == GROUP || op == NAME;
    return op >= SKIP && op <= SCALAR && size >= 0 && role >= NO_ROLE && role < END_OF_ROLES &&
           (!is_value || (column >= 0 && column + (op == RECORDS ? 2 : 0) < COLUMNS)) &&
           (op != HEADER || (column >= 0 && column < HEADERS)) &&
           (!is_number || size == 1 || size == 2 || size == 4 || size == 8) &&
           (role == NO_ROLE || (role == TOPIC_ID ? op == ID : role < TOPIC_ID ? is_text : is_number));
}

static int read_step_of(Step *step, PyObject *given)
{
    int op, size, column, is_nullable, role;
    PyObject *inner;
    if (!PyArg_ParseTuple(given, "iiipOi", &op, &size, &column, &is_nullable, &inner, &role))
        return FAILED;
    int has_inner = op == STRUCTS || op == PARTITIONS;
    if (has_inner != Py_IS_TYPE(inner, &ProgramType) || !is_valid(op, size, column, role)) {
        PyErr_Format(PyExc_ValueError, "invalid step %d", op);
        return FAILED;
    }
    *step = (Step){.size = size, .op = (int8_t)op, .column = (int8_t)column, .role = (int8_t)role, .is_nullable = (int8_t)is_nullable};
    if (has_inner)
        step->inner = (Program *)Py_NewRef(inner);
    return DONE;
}

/* Program(flexible: bool, steps: tuple[tuple[op, size, column, nullable, inner | None, role], ...],
           defaults: tuple[tuple[column, value, is set], ...], maps_topic_id: bool) */
static PyObject *program_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(names))
{
    int is_flexible, maps_topic_id;
    PyObject *steps, *defaults;
    if (!PyArg_ParseTuple(args, "pO!O!p", &is_flexible, &PyTuple_Type, &steps, &PyTuple_Type, &defaults, &maps_topic_id))
        return NULL;
    Py_ssize_t count = PyTuple_GET_SIZE(steps);
    Program *self = new_program(type, count, is_flexible);
    if (!self)
        return NULL;
    self->flag = maps_topic_id;
    int ok = read_defaults(self, defaults);
    for (Py_ssize_t i = 0; ok == DONE && i < count; i++)
        ok = read_step_of(self->steps + i, PyTuple_GET_ITEM(steps, i));
    if (ok != DONE)
        Py_CLEAR(self);
    return (PyObject *)self;
}

PROGRAM_TYPE("kafkawire.capture.tables.extraction.blocks", program_new);

/* -- entries */

typedef union {
    int64_t number;
    PyObject *text;
} Value;

/* A partition in a message, or a row. Bits of columns: set, those that it has; valid, not null; texts, strings. */
typedef struct {
    PyObject *topic, *key, *group; /* group: NULL for none */
    int32_t partition;
    uint32_t set, valid, texts;
    uint8_t requested, responded, in_session;
    Value values[COLUMNS];
} Entry;

typedef struct {
    Entry *entries;
    Py_ssize_t count, room;
} Entries;

/* Make room for some more entries. */
static int reserve(Entries *to, int64_t more)
{
    if (more <= to->room - to->count)
        return DONE;
    Py_ssize_t room = to->count + (Py_ssize_t)more;
    Entry *entries = PyMem_Realloc(to->entries, (size_t)room * sizeof(Entry));
    if (!entries) {
        PyErr_NoMemory();
        return FAILED;
    }
    to->entries = entries;
    to->room = room;
    return DONE;
}

static Entry *new_entry(Entries *to)
{
    if (to->count == to->room && reserve(to, to->room ? to->room : 4) != DONE)
        return NULL;
    return to->entries + to->count++;
}

/* Add an entry without columns. */
static Entry *add_entry(Entries *to, PyObject *topic, PyObject *key, PyObject *group, int32_t partition)
{
    Entry *made = new_entry(to);
    if (made) {
        made->topic = Py_NewRef(topic);
        made->key = Py_NewRef(key);
        made->group = Py_XNewRef(group);
        made->partition = partition;
        made->set = made->valid = made->texts = 0;
        made->requested = made->responded = 0;
        made->in_session = NO_SESSION;
    }
    return made;
}

/* The number of the lowest bit that is set. */
static inline int lowest(uint32_t bits)
{
#if defined(__GNUC__)
    return __builtin_ctz(bits);
#else
    int found = 0;
    while (!(bits >> found & 1))
        found++;
    return found;
#endif
}

static void release_texts(Entry *entry, uint32_t columns)
{
    for (uint32_t left = entry->texts & columns; left; left &= left - 1)
        Py_DECREF(entry->values[lowest(left)].text);
    entry->texts &= ~columns;
}

static void release(Entry *entry)
{
    Py_DECREF(entry->topic);
    Py_DECREF(entry->key);
    Py_XDECREF(entry->group);
    release_texts(entry, ~(uint32_t)0);
}

/* Drop all entries, and keep their memory. */
static void drop_all(Entries *entries)
{
    for (Py_ssize_t i = 0; i < entries->count; i++)
        release(entries->entries + i);
    entries->count = 0;
}

static void release_all(Entries *entries)
{
    drop_all(entries);
    PyMem_Free(entries->entries);
    *entries = (Entries){0};
}

/* Copy the columns that one has to another. */
static void fill(Entry *to, const Entry *from)
{
    release_texts(to, from->set);
    for (uint32_t left = from->set; left; left &= left - 1) {
        int column = lowest(left);
        to->values[column] = from->values[column];
    }
    for (uint32_t left = from->texts & from->set; left; left &= left - 1)
        Py_INCREF(from->values[lowest(left)].text);
    to->texts |= from->texts & from->set;
    to->valid = (to->valid & ~from->set) | (from->valid & from->set);
    to->set |= from->set;
}

static Entry *add_copy(Entries *to, const Entry *from)
{
    Entry *made = new_entry(to);
    if (made) {
        *made = *from;
        Py_INCREF(made->topic);
        Py_INCREF(made->key);
        Py_XINCREF(made->group);
        for (uint32_t left = made->texts; left; left &= left - 1)
            Py_INCREF(made->values[lowest(left)].text);
    }
    return made;
}

static void set_number(Entry *entry, int column, int64_t number)
{
    release_texts(entry, 1u << column);
    entry->values[column].number = number;
    entry->set |= 1u << column;
    entry->valid |= 1u << column;
}

static void set_null(Entry *entry, int column)
{
    release_texts(entry, 1u << column);
    entry->set |= 1u << column;
    entry->valid &= ~(1u << column);
}

/* text: its reference is taken over */
static void set_text(Entry *entry, int column, PyObject *text)
{
    release_texts(entry, 1u << column);
    entry->values[column].text = text;
    entry->set |= 1u << column;
    entry->valid |= 1u << column;
    entry->texts |= 1u << column;
}

/* -- entries by topic, partition and group */

typedef struct {
    Entries *entries;
    Py_ssize_t first; /* entries before it are of others */
    Py_ssize_t next;  /* the entry after the last one found: messages list partitions in the same order */
    uint32_t *slots;  /* 0, or the number of an entry from `first`, from 1; NULL for few */
    size_t mask;
} Index;

static int same_text(PyObject *one, PyObject *other)
{
    if (one == other)
        return 1;
    if (!one || !other || Py_TYPE(one) != Py_TYPE(other))
        return 0;
    return PyObject_RichCompareBool(one, other, Py_EQ);
}

/* 1 for the same, 0 for others, -1 with an exception */
static int same(const Entry *entry, PyObject *key, PyObject *group, int32_t partition)
{
    if (entry->partition != partition)
        return 0;
    int found = same_text(entry->key, key);
    return found == 1 ? same_text(entry->group, group) : found;
}

static int start_index(Index *index, Entries *entries, Py_ssize_t most)
{
    *index = (Index){entries, entries->count, entries->count, NULL, 0};
    if (most <= FEW)
        return DONE;
    size_t size = 32;
    while (size < (size_t)most * 2)
        size *= 2;
    index->slots = PyMem_Calloc(size, sizeof *index->slots);
    index->mask = size - 1;
    if (!index->slots) {
        PyErr_NoMemory();
        return FAILED;
    }
    return DONE;
}

static void end_index(Index *index) { PyMem_Free(index->slots); }

/* Find an entry; DECLINED if there is none, and then `slot` is where it belongs. */
static int find(Index *index, PyObject *key, PyObject *group, int32_t partition, Entry **found, uint32_t **slot)
{
    Entry *entries = index->entries->entries + index->first;
    *slot = NULL;
    if (index->next < index->entries->count) {
        *found = index->entries->entries + index->next;
        if (same(*found, key, group, partition) == DONE) {
            index->next++;
            return DONE;
        }
        if (PyErr_Occurred())
            return FAILED;
    }
    if (!index->slots) {
        for (Py_ssize_t i = 0; i < index->entries->count - index->first; i++) {
            int is_same = same(entries + i, key, group, partition);
            if (is_same) {
                *found = entries + i;
                index->next = index->first + i + 1;
                return is_same;
            }
        }
        return DECLINED;
    }
    Py_hash_t hash = PyObject_Hash(key), of_group = group ? PyObject_Hash(group) : 0;
    if ((hash == -1 || of_group == -1) && PyErr_Occurred())
        return FAILED;
    uint64_t mixed = ((uint64_t)hash + (uint64_t)of_group * 0x9E3779B97F4A7C15u + (uint32_t)partition) * 0xD6E8FEB86659FD93u;
    for (size_t at = (mixed >> 32) & index->mask;; at = (at + 1) & index->mask) {
        *slot = index->slots + at;
        if (!**slot)
            return DECLINED;
        Entry *entry = entries + **slot - 1;
        int is_same = same(entry, key, group, partition);
        if (is_same) {
            *found = entry;
            index->next = index->first + **slot;
            return is_same;
        }
    }
}

/* Note that the last entry is the one that `find` did not find. */
static void found_last(Index *index, uint32_t *slot)
{
    if (slot)
        *slot = (uint32_t)(index->entries->count - index->first);
}

/* -- blocks */

/* Distinct entities of a kind, in order of first occurrence. seen: a set of them, if there are many. NULL for none. */
typedef struct {
    PyObject *list, *seen;
} Distinct;

static void release_distinct(Distinct *entities)
{
    Py_CLEAR(entities->list);
    Py_CLEAR(entities->seen);
}

/* Add one unless it is among those from `first` on. Topics are compared by identity. */
static int add_distinct(Distinct *to, Py_ssize_t first, PyObject *value)
{
    Py_ssize_t count = PyList_GET_SIZE(to->list);
    if (count - first > FEW) {
        if (!to->seen) {
            PyObject *some = PyList_GetSlice(to->list, first, count);
            to->seen = some ? PySet_New(some) : NULL;
            Py_XDECREF(some);
        }
        int is_in = to->seen ? PySet_Contains(to->seen, value) : -1;
        if (is_in)
            return is_in;
        if (PySet_Add(to->seen, value) < 0)
            return FAILED;
    }
    int has_value = PyUnicode_Check(value) || PyLong_Check(value);
    for (Py_ssize_t i = first; i < count && !to->seen; i++) {
        PyObject *one = PyList_GET_ITEM(to->list, i);
        int is_same = one == value ? 1 : has_value ? PyObject_RichCompareBool(one, value, Py_EQ) : 0;
        if (is_same)
            return is_same;
    }
    return PyList_Append(to->list, value) < 0 ? FAILED : DONE;
}

enum { TOPICS, GROUPS, TRANSACTIONAL_IDS, ERROR_CODES, SETS }; /* kinds of entities */

/* Partitions by topic, in order of first occurrence: the numbers of topic i end at ends[i]. */
typedef struct {
    PyObject *topics, *known; /* lists; those with a name or an id. NULL if this was not computed */
    int32_t *ends, *numbers;
} ByTopic;

typedef struct {
    PyObject_HEAD
    Entries held;
    PyObject *group; /* of the message, for partitions without one of their own; None for none */
    Distinct sets[SETS];
    PyObject *fields; /* the records fields, a list; NULL for none */
    ByTopic by_topic;
    long long numbers[MAX_NUMBERS];
    long long header[HEADERS]; /* session id, session epoch, error code */
} Block;

static PyTypeObject BlockType;

static void release_by_topic(ByTopic *made)
{
    Py_CLEAR(made->topics);
    Py_CLEAR(made->known);
    PyMem_Free(made->ends); /* and the numbers */
    *made = (ByTopic){0};
}

static Block *new_block(void)
{
    Block *made = PyObject_New(Block, &BlockType);
    if (made) {
        made->held = (Entries){0};
        made->group = Py_NewRef(Py_None);
        memset(made->sets, 0, sizeof made->sets);
        made->fields = NULL;
        made->by_topic = (ByTopic){0};
        for (int i = 0; i < MAX_NUMBERS; i++)
            made->numbers[i] = NO_NUMBER;
        made->header[0] = made->header[2] = 0;
        made->header[1] = -1; /* no session */
    }
    return made;
}

static PyObject *block_new(PyTypeObject *Py_UNUSED(type), PyObject *args, PyObject *Py_UNUSED(names))
{
    return PyArg_ParseTuple(args, "") ? (PyObject *)new_block() : NULL;
}

static void block_dealloc(Block *self)
{
    release_all(&self->held);
    Py_XDECREF(self->group);
    for (int i = 0; i < SETS; i++)
        release_distinct(self->sets + i);
    Py_XDECREF(self->fields);
    release_by_topic(&self->by_topic);
    PyObject_Free(self);
}

static Py_ssize_t block_len(Block *self) { return self->held.count; }

static PyObject *or_null(PyObject *value) { return value == Py_None ? NULL : value; }

static int set_value(Entry *entry, int column, PyObject *value, uint32_t mask)
{
    uint32_t before = entry->set;
    if (value == Py_None)
        set_null(entry, column);
    else if (PyUnicode_Check(value))
        set_text(entry, column, Py_NewRef(value));
    else {
        int64_t number = PyLong_AsLongLong(value);
        if (number == -1 && PyErr_Occurred())
            return FAILED;
        set_number(entry, column, number);
    }
    if (!(mask >> column & 1)) /* a value of other versions */
        entry->set = before;
    return DONE;
}

/* add(topic, partition: int, group: str | None, columns: tuple[int, ...], values: tuple[...], mask: int) */
static PyObject *block_add(Block *self, PyObject *args)
{
    PyObject *topic, *group, *columns, *values;
    int partition;
    unsigned int mask;
    if (!PyArg_ParseTuple(args, "OiOO!O!I", &topic, &partition, &group, &PyTuple_Type, &columns, &PyTuple_Type, &values, &mask))
        return NULL;
    if (PyTuple_GET_SIZE(columns) != PyTuple_GET_SIZE(values))
        return PyErr_Format(PyExc_ValueError, "as many values as columns expected");
    PyObject *key = PyObject_GetAttrString(topic, "key");
    if (!key)
        return NULL;
    release_by_topic(&self->by_topic);
    Entry *entry = add_entry(&self->held, topic, key, or_null(group), partition);
    Py_DECREF(key);
    if (!entry)
        return NULL;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(columns); i++) {
        long column = PyLong_AsLong(PyTuple_GET_ITEM(columns, i));
        if (column < 0 || column >= COLUMNS) {
            if (!PyErr_Occurred())
                PyErr_Format(PyExc_ValueError, "invalid column %ld", column);
            return NULL;
        }
        if (set_value(entry, (int)column, PyTuple_GET_ITEM(values, i), mask) < 0)
            return NULL;
    }
    Py_RETURN_NONE;
}

/* Whether a set of keys of `fetch_sessions` has an entry. */
static int is_in(PyObject *keys, const Entry *entry)
{
    PyObject *key = Py_BuildValue("Oi", entry->key, entry->partition);
    int found = key ? PySet_Contains(keys, key) : -1;
    Py_XDECREF(key);
    return found;
}

/* Add entries to those of an index: one that is there already takes the place of the earlier one. */
static int put_listed(Index *index, const Entries *listed)
{
    for (Py_ssize_t i = 0; i < listed->count; i++) {
        const Entry *entry = listed->entries + i;
        Entry *before;
        uint32_t *slot;
        int found = find(index, entry->key, entry->group, entry->partition, &before, &slot);
        if (found == FAILED)
            return FAILED;
        if (found == DONE) {
            Entries one = {0};
            if (!add_copy(&one, entry))
                return FAILED;
            release(before);
            *before = one.entries[0];
            PyMem_Free(one.entries);
        } else {
            if (!add_copy(index->entries, entry))
                return FAILED;
            found_last(index, slot);
        }
    }
    return DONE;
}

/* Drop the entries of a block that are in a set, unless they are listed. */
static int drop(Block *made, const Entries *listed, PyObject *forgotten)
{
    Index index;
    Entries again = {0};
    int ok = start_index(&index, &again, listed->count);
    if (ok == DONE)
        ok = put_listed(&index, listed);
    Entries kept = {0};
    for (Py_ssize_t i = 0; ok == DONE && i < made->held.count; i++) {
        Entry *entry = made->held.entries + i, *found;
        uint32_t *slot;
        int is_gone = is_in(forgotten, entry);
        if (is_gone > 0) {
            int is_listed = find(&index, entry->key, entry->group, entry->partition, &found, &slot);
            is_gone = is_listed == FAILED ? -1 : is_listed == DECLINED;
        }
        if (is_gone < 0 || (!is_gone && !add_copy(&kept, entry)))
            ok = FAILED;
    }
    end_index(&index);
    release_all(&again);
    release_all(&made->held);
    made->held = kept;
    return ok;
}

/* merged(listed: Block, forgotten: set[Key]) -> Block */
static PyObject *block_merged(Block *self, PyObject *args)
{
    Block *listed;
    PyObject *forgotten;
    if (!PyArg_ParseTuple(args, "O!O!", &BlockType, &listed, &PySet_Type, &forgotten))
        return NULL;
    Block *made = new_block();
    if (!made)
        return NULL;
    Index index;
    int ok = start_index(&index, &made->held, self->held.count + listed->held.count);
    if (ok == DONE)
        ok = put_listed(&index, &self->held);
    if (ok == DONE)
        ok = put_listed(&index, &listed->held);
    end_index(&index);
    if (ok == DONE && PySet_GET_SIZE(forgotten))
        ok = drop(made, &listed->held, forgotten);
    if (ok != DONE)
        Py_CLEAR(made);
    return (PyObject *)made;
}

/* Find the topic of an entry among those so far; numbers: the number of each key. */
static int topic_number(ByTopic *made, PyObject *numbers, const Entry *entry, Py_ssize_t *found)
{
    PyObject *number = PyDict_GetItemWithError(numbers, entry->key);
    if (number) {
        *found = PyLong_AsSsize_t(number);
        return DONE;
    }
    *found = PyList_GET_SIZE(made->topics);
    number = PyErr_Occurred() ? NULL : PyLong_FromSsize_t(*found);
    int ok = number && PyDict_SetItem(numbers, entry->key, number) == 0 && PyList_Append(made->topics, entry->topic) == 0;
    if (ok && entry->key != Py_None)
        ok = PyList_Append(made->known, entry->topic) == 0;
    Py_XDECREF(number);
    return ok ? DONE : FAILED;
}

/* Find the topic of each partition. */
static int find_topics(ByTopic *made, const Entries *held, int32_t *topics)
{
    PyObject *numbers = PyDict_New();
    Py_ssize_t topic = 0;
    int ok = numbers ? DONE : FAILED;
    for (Py_ssize_t i = 0; ok == DONE && i < held->count; i++) {
        const Entry *entry = held->entries + i;
        if (!i || entry[-1].key != entry->key)
            ok = topic_number(made, numbers, entry, &topic);
        topics[i] = (int32_t)topic;
    }
    Py_XDECREF(numbers);
    return ok;
}

/* Order the partitions of a block by topic, once. */
static int find_by_topic(Block *self)
{
    ByTopic *made = &self->by_topic;
    Py_ssize_t count = self->held.count;
    if (made->topics || !count)
        return DONE;
    made->topics = PyList_New(0);
    made->known = PyList_New(0);
    made->ends = PyMem_Calloc((size_t)count, 3 * sizeof(int32_t));
    made->numbers = made->ends ? made->ends + count : NULL;
    int32_t *topics = made->ends ? made->numbers + count : NULL;
    if (!topics)
        PyErr_NoMemory();
    if (PyErr_Occurred() || find_topics(made, &self->held, topics) != DONE) {
        release_by_topic(made);
        return FAILED;
    }
    for (Py_ssize_t i = 0; i < count; i++)
        made->ends[topics[i]]++;
    int32_t start = 0;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(made->topics); i++) {
        int32_t of_topic = made->ends[i];
        made->ends[i] = start;
        start += of_topic;
    }
    for (Py_ssize_t i = 0; i < count; i++)
        made->numbers[made->ends[topics[i]]++] = self->held.entries[i].partition;
    return DONE;
}

static PyObject *too_many_numbers(void)
{
    return PyErr_Format(PyExc_ValueError, "at most %d numbers expected", MAX_NUMBERS);
}

/* identify(topics, groups, transactional_ids, error_codes: lists of distinct ones, numbers: tuple[int, ...]) */
static PyObject *block_identify(Block *self, PyObject *args)
{
    PyObject *lists[SETS], *numbers;
    if (!PyArg_ParseTuple(args, "O!O!O!O!O!", &PyList_Type, lists, &PyList_Type, lists + 1, &PyList_Type, lists + 2, &PyList_Type, lists + 3, &PyTuple_Type, &numbers))
        return NULL;
    if (PyTuple_GET_SIZE(numbers) > MAX_NUMBERS)
        return too_many_numbers();
    for (int i = 0; i < SETS; i++) {
        release_distinct(self->sets + i);
        self->sets[i].list = Py_NewRef(lists[i]);
    }
    for (Py_ssize_t i = 0; i < MAX_NUMBERS; i++) {
        int is_set = i < PyTuple_GET_SIZE(numbers);
        self->numbers[i] = is_set ? PyLong_AsLongLong(PyTuple_GET_ITEM(numbers, i)) : NO_NUMBER;
        if (self->numbers[i] == -1 && PyErr_Occurred())
            return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *numbers_of(const Block *self)
{
    PyObject *numbers = PyTuple_New(MAX_NUMBERS);
    for (int i = 0; numbers && i < MAX_NUMBERS; i++) {
        PyObject *number = PyLong_FromLongLong(self->numbers[i]);
        if (number)
            PyTuple_SET_ITEM(numbers, i, number);
        else
            Py_CLEAR(numbers);
    }
    return numbers;
}

/* entities: (topics, groups, transactional ids, error codes, numbers, records fields) */
static PyObject *block_entities(Block *self, void *Py_UNUSED(unused))
{
    PyObject *found = PyTuple_New(SETS + 2);
    if (!found)
        return NULL;
    for (int i = 0; i < SETS; i++)
        PyTuple_SET_ITEM(found, i, self->sets[i].list ? Py_NewRef(self->sets[i].list) : PyList_New(0));
    PyTuple_SET_ITEM(found, SETS, numbers_of(self));
    PyTuple_SET_ITEM(found, SETS + 1, self->fields ? Py_NewRef(self->fields) : PyList_New(0));
    for (int i = 0; i < SETS + 2; i++)
        if (!PyTuple_GET_ITEM(found, i)) {
            Py_DECREF(found);
            return NULL;
        }
    return found;
}

static PyGetSetDef block_computed[] = {
    {"entities", (getter)block_entities, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef block_methods[] = {
    {"add", (PyCFunction)block_add, METH_VARARGS, NULL},
    {"identify", (PyCFunction)block_identify, METH_VARARGS, NULL},
    {"merged", (PyCFunction)block_merged, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef block_members[] = {
    {"fields", T_OBJECT, offsetof(Block, fields), READONLY, NULL},
    {"group", T_OBJECT, offsetof(Block, group), 0, NULL},
    {"session_id", T_LONGLONG, offsetof(Block, header), READONLY, NULL},
    {"session_epoch", T_LONGLONG, offsetof(Block, header) + sizeof(long long), READONLY, NULL},
    {"error_code", T_LONGLONG, offsetof(Block, header) + 2 * sizeof(long long), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PySequenceMethods block_sequence = {.sq_length = (lenfunc)block_len};

static PyTypeObject BlockType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "kafkawire.capture.tables.extraction.blocks.Block",
    .tp_basicsize = sizeof(Block),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "What tables need of one message: its entities, and its partitions in wire order.",
    .tp_new = block_new,
    .tp_dealloc = (destructor)block_dealloc,
    .tp_methods = block_methods,
    .tp_members = block_members,
    .tp_getset = block_computed,
    .tp_as_sequence = &block_sequence,
};

/* -- reading bodies */

typedef struct {
    PyObject_HEAD
    PyObject *topic_of; /* topic_of(name: str | None, id: bytes | None) -> Topic */
    PyObject *learn;    /* learn(name: str, id: bytes): learns the name of an id, if it has none */
    PyObject *count;    /* count(data: bytes) -> (batches, records | None) */
    PyTypeObject *field; /* a tuple of topic, partition, data */
    PyObject *by_name, *by_id; /* topics and their keys */
    PyObject *learned;  /* a set: the ids whose names were learned */
} Reader;

/* named: pairs of a name and an id, to be learned if the whole body can be read; NULL for none */
typedef struct {
    Cursor in;
    Reader *reader;
    Block *to;
    PyObject *named;
    int wanted;
} Body;

/* What is known of the partitions in a struct: group, name, id and topic. id_at: where the id is. */
typedef struct {
    PyObject *group, *name, *id, *topic, *key;
    Bytes id_at;
    int is_message;
} Place;

static void end_place(Place *place)
{
    Py_XDECREF(place->group);
    Py_XDECREF(place->name);
    Py_XDECREF(place->id);
    Py_XDECREF(place->topic);
    Py_XDECREF(place->key);
}

/* Read a string (`width` 2) or bytes (4); size: -1 for null, which few fields may be. */
static int sized(Body *body, const Step *step, int width, Bytes *found, int64_t *size)
{
    TRY(length(&body->in, width, size));
    *found = body->in.at;
    if (*size < 0)
        return step->is_nullable ? DONE : DECLINED;
    return skip(&body->in, *size);
}

static int counted(Body *body, const Step *step, int64_t *count)
{
    TRY(length(&body->in, 4, count));
    if (*count < 0)
        return step->is_nullable ? DONE : DECLINED;
    return take_elements(&body->in, *count);
}

static int is_ascii(Bytes p, int64_t size)
{
    uint64_t word = 0, each;
    for (; size >= 8; p += 8, size -= 8) {
        memcpy(&each, p, 8);
        word |= each;
    }
    for (; size > 0; size--)
        word |= *p++;
    return !(word & 0x8080808080808080u);
}

static int text_of(Bytes p, int64_t size, PyObject **found)
{
    *found = PyUnicode_DecodeUTF8((const char *)p, (Py_ssize_t)size, NULL);
    if (*found)
        return DONE;
    if (!PyErr_ExceptionMatches(PyExc_UnicodeDecodeError))
        return FAILED;
    PyErr_Clear(); /* left to the decoder */
    return DECLINED;
}

/* Make a topic and its key, as a pair. */
static PyObject *new_topic(Reader *reader, PyObject *name, PyObject *id)
{
    PyObject *topic = PyObject_CallFunctionObjArgs(reader->topic_of, name, id, NULL);
    PyObject *key = topic ? PyObject_GetAttrString(topic, "key") : NULL;
    PyObject *made = key ? PyTuple_Pack(2, topic, key) : NULL;
    Py_XDECREF(topic);
    Py_XDECREF(key);
    return made;
}

/* Find the topic of a name or an id, where only one is stated: it is the same whenever it is looked for. */
static PyObject *known_topic(Reader *reader, PyObject *topics, PyObject *name, PyObject *id)
{
    PyObject *by = id == Py_None ? name : id;
    PyObject *found = PyDict_GetItemWithError(topics, by);
    if (found || PyErr_Occurred())
        return Py_XNewRef(found);
    found = new_topic(reader, name, id);
    if (found && PyDict_SetItem(topics, by, found) < 0)
        Py_CLEAR(found);
    return found;
}

/* Make the id in a struct an object, unless it is zero. */
static int find_id(Place *place)
{
    static const uint8_t zero[16];
    if (place->id || !place->id_at || !memcmp(place->id_at, zero, 16))
        return DONE;
    place->id = PyBytes_FromStringAndSize((const char *)place->id_at, 16);
    return place->id ? DONE : FAILED;
}

/* Find the topic that a struct names, and put it into the place. */
static int find_topic(Body *body, Place *place)
{
    Reader *reader = body->reader;
    PyObject *name = place->name ? place->name : Py_None, *pair;
    TRY(find_id(place));
    int is_learned = place->id && place->name ? PySet_Contains(reader->learned, place->id) : 1;
    if (is_learned < 0)
        return FAILED;
    if (!place->id)
        pair = known_topic(reader, reader->by_name, name, Py_None);
    else if (is_learned) /* the name that was learned for the id is the topic's */
        pair = known_topic(reader, reader->by_id, Py_None, place->id);
    else
        pair = new_topic(reader, name, place->id);
    if (!pair)
        return FAILED;
    place->topic = Py_NewRef(PyTuple_GET_ITEM(pair, 0));
    place->key = Py_NewRef(PyTuple_GET_ITEM(pair, 1));
    Py_DECREF(pair);
    return DONE;
}

/* Note that a struct maps an id to a name. */
static int note_name(Body *body, Place *place)
{
    if (!place->name)
        return DONE;
    TRY(find_id(place));
    if (!place->id)
        return DONE;
    int is_learned = PySet_Contains(body->reader->learned, place->id);
    if (is_learned)
        return is_learned > 0 ? DONE : FAILED;
    if (!body->named && !(body->named = PyList_New(0)))
        return FAILED;
    PyObject *pair = PyTuple_Pack(2, place->name, place->id);
    int ok = pair && PyList_Append(body->named, pair) == 0 ? DONE : FAILED;
    Py_XDECREF(pair);
    return ok;
}

/* Learn the names that a body states. */
static int learn_names(Body *body)
{
    Reader *reader = body->reader;
    for (Py_ssize_t i = 0; body->named && i < PyList_GET_SIZE(body->named); i++) {
        PyObject *pair = PyList_GET_ITEM(body->named, i), *id = PyTuple_GET_ITEM(pair, 1);
        PyObject *done = PyObject_CallFunctionObjArgs(reader->learn, PyTuple_GET_ITEM(pair, 0), id, NULL);
        if (!done || PySet_Add(reader->learned, id) < 0) {
            Py_XDECREF(done);
            return FAILED;
        }
        Py_DECREF(done);
    }
    return DONE;
}

/* -- entities */

static int add_to_set(Body *body, int set, PyObject *value)
{
    Distinct *held = body->to->sets + set;
    if (!held->list && !(held->list = PyList_New(0)))
        return FAILED;
    return add_distinct(held, 0, value);
}

/* Add the topic of a name or an id. */
static int add_topic(Body *body, PyObject *topics, PyObject *name, PyObject *id)
{
    PyObject *pair = known_topic(body->reader, topics, name, id);
    int ok = pair ? add_to_set(body, TOPICS, PyTuple_GET_ITEM(pair, 0)) : FAILED;
    Py_XDECREF(pair);
    return ok;
}

/* Add what a string identifies. */
static int add_text(Body *body, int role, PyObject *text)
{
    if (role == NO_ROLE || !(body->wanted & ENTITIES))
        return DONE;
    if (role == TOPIC)
        return add_topic(body, body->reader->by_name, text, Py_None);
    return add_to_set(body, role == GROUP_ID ? GROUPS : TRANSACTIONAL_IDS, text);
}

static int add_number(Body *body, int role, int64_t number)
{
    if (role == NO_ROLE || !(body->wanted & ENTITIES))
        return DONE;
    if (role >= FIRST_NUMBER)
        body->to->numbers[role - FIRST_NUMBER] = number;
    if (role != ERROR_CODE || !number)
        return DONE;
    PyObject *code = PyLong_FromLongLong(number);
    int ok = code ? add_to_set(body, ERROR_CODES, code) : FAILED;
    Py_XDECREF(code);
    return ok;
}

/* -- partitions */

/* Count batches and records; records: -1 if a batch is corrupt. DECLINED for batches of old formats. */
static int count_batches(Bytes p, Bytes end, int64_t *batches, int64_t *records)
{
    *batches = *records = 0;
    while (end - p >= LOG_OVERHEAD) {
        int64_t size = big_endian(p + 8, 4), left = end - p;
        if (size >= SMALLEST_BATCH && (left < TO_MAGIC || size > left - LOG_OVERHEAD))
            break; /* a truncated batch at the end */
        if (size >= SMALLEST_BATCH && p[16] < 2)
            return DECLINED;
        if (size < BATCH_HEADER - LOG_OVERHEAD || p[16] > 2 || p[57] & 0x80) {
            *records = -1;
            return DONE;
        }
        ++*batches;
        *records += big_endian(p + 57, 4);
        p += LOG_OVERHEAD + size;
    }
    if (*records > INT32_MAX)
        *records = -1;
    return DONE;
}

static int left_to_python(Reader *reader, Bytes p, int64_t size, int64_t *batches, int64_t *records)
{
    PyObject *data = PyBytes_FromStringAndSize((const char *)p, (Py_ssize_t)size);
    PyObject *counts = data ? PyObject_CallOneArg(reader->count, data) : NULL;
    PyObject *found = NULL;
    int ok = counts && PyArg_ParseTuple(counts, "LO", batches, &found);
    if (ok)
        *records = found == Py_None ? -1 : PyLong_AsLongLong(found);
    Py_XDECREF(data);
    Py_XDECREF(counts);
    return PyErr_Occurred() ? FAILED : DONE;
}

static int add_field(Body *body, const Entry *entry, Bytes p, int64_t size)
{
    PyObject *data = PyBytes_FromStringAndSize((const char *)p, (Py_ssize_t)size);
    PyObject *partition = data ? PyLong_FromLong(entry->partition) : NULL;
    PyObject *field = partition ? body->reader->field->tp_alloc(body->reader->field, 3) : NULL;
    if (!field) {
        Py_XDECREF(data);
        Py_XDECREF(partition);
        return FAILED;
    }
    PyTuple_SET_ITEM(field, 0, Py_NewRef(entry->topic));
    PyTuple_SET_ITEM(field, 1, partition);
    PyTuple_SET_ITEM(field, 2, data);
    if (!body->to->fields)
        body->to->fields = PyList_New(0);
    int ok = body->to->fields && PyList_Append(body->to->fields, field) == 0 ? DONE : FAILED;
    Py_DECREF(field);
    return ok;
}

static int read_records(Body *body, const Step *step, Entry *entry)
{
    int column = step->column;
    Bytes data;
    int64_t size, batches = 0, records = 0;
    TRY(sized(body, step, 4, &data, &size));
    if (size > 0 && body->wanted & FIELDS)
        TRY(add_field(body, entry, data, size));
    if (!(body->wanted & PARTITION_VALUES))
        return DONE;
    if (size > 0) {
        int done = count_batches(data, data + size, &batches, &records);
        if (done == DECLINED)
            TRY(left_to_python(body->reader, data, size, &batches, &records));
    }
    set_number(entry, column, size < 0 ? 0 : size);
    set_number(entry, column + 1, batches);
    if (records < 0)
        set_null(entry, column + 2);
    else
        set_number(entry, column + 2, records);
    return DONE;
}

/* Read a field of a partition. */
static int read_value(Body *body, const Step *step, Entry *entry)
{
    if (step->op == RECORDS)
        return read_records(body, step, entry);
    Bytes data = body->in.at;
    int64_t size = step->size;
    if (step->op == TEXT) {
        TRY(sized(body, step, 2, &data, &size));
        if (size < 0) {
            set_null(entry, step->column);
            return DONE;
        }
        PyObject *text;
        TRY(text_of(data, size, &text));
        set_text(entry, step->column, text);
        return DONE;
    }
    TRY(skip(&body->in, size));
    int64_t number = big_endian(data, (int)size);
    if (step->op == NUMBER)
        entry->partition = (int32_t)number;
    else
        set_number(entry, step->column, number);
    return add_number(body, step->role, number);
}

static int read_struct(Body *body, const Program *program, Place *place, Entry *entry);

static int read_structs(Body *body, const Step *step, const Place *around)
{
    int64_t count;
    TRY(counted(body, step, &count));
    for (; count > 0; count--) {
        Place place = {.group = Py_XNewRef(around->group)};
        int done = read_struct(body, step->inner, &place, NULL);
        end_place(&place);
        if (done != DONE)
            return done;
    }
    return DONE;
}

static void set_defaults(Entry *entry, const Defaults *defaults)
{
    for (int i = 0; defaults && i < defaults->count; i++) {
        const Default *each = defaults->each + i;
        entry->values[each->column].number = each->number;
        entry->set |= (uint32_t)each->is_set << each->column;
        entry->valid |= (uint32_t)!each->is_null << each->column;
    }
}

static int read_partitions(Body *body, const Step *step, Place *place)
{
    static const Step number = {.op = NUMBER, .size = 4};
    int64_t count;
    TRY(counted(body, step, &count));
    if (count <= 0)
        return DONE;
    if (!place->topic)
        TRY(find_topic(body, place));
    const Program *inner = step->inner;
    Entries *held = &body->to->held;
    TRY(reserve(held, count < MOST_RESERVED && body->wanted & PARTITION_VALUES ? count : 1));
    for (; count > 0; count--) {
        Entry *entry = add_entry(held, place->topic, place->key, place->group, 0);
        if (!entry)
            return FAILED;
        if (inner)
            set_defaults(entry, inner->more);
        TRY(inner ? read_struct(body, inner, place, entry) : read_value(body, &number, entry));
        if (!(body->wanted & PARTITION_VALUES))
            release(held->entries + --held->count);
    }
    return DONE;
}

/* Read a string, which must be UTF-8. found: where to put it, if it is needed as an object and not empty. */
static int read_string(Body *body, const Step *step, PyObject **found)
{
    Bytes data;
    int64_t size;
    PyObject *text;
    TRY(sized(body, step, 2, &data, &size));
    int is_entity = step->role != NO_ROLE && body->wanted & ENTITIES;
    if (size <= 0 || (!found && !is_entity && is_ascii(data, size)))
        return DONE;
    TRY(text_of(data, size, &text));
    int ok = add_text(body, step->role, text);
    if (found && ok == DONE)
        Py_XSETREF(*found, text);
    else
        Py_DECREF(text);
    return ok;
}

/* Read the group of the partitions that follow. */
static int read_group(Body *body, const Step *step, Place *place)
{
    PyObject *group = NULL;
    TRY(read_string(body, step, &group));
    if (!group)
        return DONE;
    if (place->is_message)
        Py_SETREF(body->to->group, Py_NewRef(group));
    Py_XSETREF(place->group, group);
    return DONE;
}

static int read_id(Body *body, const Step *step, Place *place)
{
    place->id_at = body->in.at;
    TRY(skip(&body->in, 16));
    if (step->role != TOPIC_ID || !(body->wanted & ENTITIES))
        return DONE;
    TRY(find_id(place));
    return place->id ? add_topic(body, body->reader->by_id, Py_None, place->id) : DONE;
}

static int skip_bytes(Body *body, const Step *step)
{
    Bytes data;
    int64_t size;
    return sized(body, step, 4, &data, &size);
}

static int skip_items(Body *body, const Step *step)
{
    Step item = {.role = step->role}; /* not nullable */
    int64_t count;
    TRY(counted(body, step, &count));
    if (step->op == ITEMS)
        return count > 0 ? skip(&body->in, count * step->size) : DONE;
    for (; count > 0; count--)
        TRY(step->op == STRINGS ? read_string(body, &item, NULL) : skip_bytes(body, &item));
    return DONE;
}

static int read_number(Body *body, const Step *step)
{
    Bytes data = body->in.at;
    TRY(skip(&body->in, step->size));
    int64_t number = big_endian(data, step->size);
    if (step->op == HEADER)
        body->to->header[step->column] = number;
    return add_number(body, step->role, number);
}

static int no_structs(Body *body, const Step *step)
{
    int64_t count;
    TRY(counted(body, step, &count));
    return count > 0 ? DECLINED : DONE;
}

static int read_step(Body *body, const Step *step, Place *place, Entry *entry)
{
    switch (step->op) {
    case SKIP:
        return skip(&body->in, step->size);
    case STRING:
        return read_string(body, step, NULL);
    case BYTES:
        return skip_bytes(body, step);
    case ITEMS:
    case STRINGS:
    case BLOBS:
        return skip_items(body, step);
    case STRUCTS:
        return read_structs(body, step, place);
    case GROUP:
        return read_group(body, step, place);
    case NAME:
        return read_string(body, step, &place->name);
    case ID:
        return read_id(body, step, place);
    case PARTITIONS:
    case NUMBERS:
        return read_partitions(body, step, place);
    case HEADER:
    case SCALAR:
        return read_number(body, step);
    case NO_STRUCTS:
        return no_structs(body, step);
    default:
        return entry ? read_value(body, step, entry) : DECLINED;
    }
}

/* entry: of the partition that the struct is, or NULL. A program is as deep as its schema. */
static int read_struct(Body *body, const Program *program, Place *place, Entry *entry)
{
    for (Py_ssize_t i = 0; i < Py_SIZE(program); i++)
        TRY(read_step(body, program->steps + i, place, entry));
    if (program->flag)
        TRY(note_name(body, place));
    return no_tags(&body->in);
}

/* Read a body; returns NULL with an exception, or without one if it is declined. */
static Block *read_body(Reader *self, const Program *program, Cursor in, int wanted)
{
    Block *made = new_block();
    if (!made)
        return NULL;
    Body body = {in, self, made, NULL, wanted};
    Place place = {.is_message = 1};
    int done = read_struct(&body, program, &place, NULL);
    end_place(&place);
    if (done == DONE)
        done = body.in.at == body.in.end ? learn_names(&body) : DECLINED;
    Py_XDECREF(body.named);
    if (done != DONE)
        Py_CLEAR(made);
    return made;
}

/* read(program, data: bytes, at: int, elements: int, wanted: int) -> Block | None */
static PyObject *reader_read(Reader *self, PyObject *const *args, Py_ssize_t given)
{
    if (given != 5 || !Py_IS_TYPE(args[0], &ProgramType) || !PyBytes_Check(args[1]))
        return PyErr_Format(PyExc_TypeError, "read() expects a Program, bytes and three numbers");
    Program *program = (Program *)args[0];
    Py_ssize_t at = PyLong_AsSsize_t(args[2]), size = PyBytes_GET_SIZE(args[1]);
    int64_t elements = PyLong_AsLongLong(args[3]);
    long wanted = PyLong_AsLong(args[4]);
    if (PyErr_Occurred())
        return NULL;
    if (at < 0 || at > size)
        return PyErr_Format(PyExc_IndexError, "outside of the data");
    Bytes data = (Bytes)PyBytes_AS_STRING(args[1]);
    Block *made = read_body(self, program, (Cursor){data + at, data + size, elements, program->is_flexible}, (int)wanted);
    if (made || PyErr_Occurred())
        return (PyObject *)made;
    Py_RETURN_NONE;
}

/* Reader(topic_of, learn, learned: a set, count, field: a class of tuples) */
static PyObject *reader_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(names))
{
    PyObject *topic_of, *learn, *learned, *count;
    PyTypeObject *field;
    if (!PyArg_ParseTuple(args, "OOO!OO!", &topic_of, &learn, &PySet_Type, &learned, &count, &PyType_Type,
                          &field))
        return NULL;
    if (!PyType_IsSubtype(field, &PyTuple_Type))
        return PyErr_Format(PyExc_TypeError, "Reader() expects a class of tuples");
    Reader *self = (Reader *)type->tp_alloc(type, 0);
    if (!self)
        return NULL;
    self->topic_of = Py_NewRef(topic_of);
    self->learn = Py_NewRef(learn);
    self->count = Py_NewRef(count);
    self->field = (PyTypeObject *)Py_NewRef(field);
    self->by_name = PyDict_New();
    self->by_id = PyDict_New();
    self->learned = Py_NewRef(learned);
    if (!self->by_name || !self->by_id)
        Py_CLEAR(self);
    return (PyObject *)self;
}

static int reader_clear(Reader *self)
{
    Py_CLEAR(self->topic_of);
    Py_CLEAR(self->learn);
    Py_CLEAR(self->count);
    Py_CLEAR(self->field);
    Py_CLEAR(self->by_name);
    Py_CLEAR(self->by_id);
    Py_CLEAR(self->learned);
    return 0;
}

static int reader_traverse(Reader *self, visitproc visit, void *arg)
{
    Py_VISIT(self->topic_of);
    Py_VISIT(self->learn);
    Py_VISIT(self->count);
    Py_VISIT(self->field);
    Py_VISIT(self->by_name);
    Py_VISIT(self->by_id);
    Py_VISIT(self->learned);
    return 0;
}

static void reader_dealloc(Reader *self)
{
    PyObject_GC_UnTrack(self);
    reader_clear(self);
    Py_TYPE(self)->tp_free(self);
}

static PyMethodDef reader_methods[] = {
    {"read", (PyCFunction)(void (*)(void))reader_read, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

static PyTypeObject ReaderType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "kafkawire.capture.tables.extraction.blocks.Reader",
    .tp_basicsize = sizeof(Reader),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_doc = "Reads what tables need of bodies, without the decoder.",
    .tp_new = reader_new,
    .tp_dealloc = (destructor)reader_dealloc,
    .tp_traverse = (traverseproc)reader_traverse,
    .tp_clear = (inquiry)reader_clear,
    .tp_methods = reader_methods,
};

/* -- rows */

typedef struct {
    PyObject_HEAD
    Entries held;
} Rows;

/* Add the partitions of a session; `mask` says which columns they have. */
static int add_session(Index *index, const Entries *session, uint32_t mask)
{
    for (Py_ssize_t i = 0; i < session->count; i++) {
        const Entry *from = session->entries + i;
        Entry *found;
        uint32_t *slot;
        if (index->slots && find(index, from->key, from->group, from->partition, &found, &slot) == FAILED)
            return FAILED;
        Entry *made = add_copy(index->entries, from);
        if (!made)
            return FAILED;
        made->set = mask;
        made->valid &= mask;
        made->in_session = 1;
        if (index->slots)
            found_last(index, slot);
    }
    return DONE;
}

static int add_message(Index *index, const Block *block, PyObject *group, int is_request)
{
    for (Py_ssize_t i = 0; i < block->held.count; i++) {
        const Entry *from = block->held.entries + i;
        PyObject *its = from->group ? from->group : group;
        Entry *row;
        uint32_t *slot;
        int found = find(index, from->key, its, from->partition, &row, &slot);
        if (found == FAILED)
            return FAILED;
        if (found == DECLINED) {
            row = add_entry(index->entries, from->topic, from->key, its, from->partition);
            if (!row)
                return FAILED;
            found_last(index, slot);
        }
        if (is_request) {
            row->requested = 1;
            if (row->in_session == 1)
                row->in_session = 0;
        } else
            row->responded = 1;
        fill(row, from);
    }
    return DONE;
}

static Py_ssize_t size_of(PyObject *block) { return block == Py_None ? 0 : ((Block *)block)->held.count; }

/* add(request: Block | None, response: Block | None, session: Block | None, mask: int) -> int */
static PyObject *rows_add(Rows *self, PyObject *const *args, Py_ssize_t given)
{
    if (given != 4)
        return PyErr_Format(PyExc_TypeError, "add() expects three blocks and a mask");
    for (int i = 0; i < 3; i++)
        if (args[i] != Py_None && !Py_IS_TYPE(args[i], &BlockType))
            return PyErr_Format(PyExc_TypeError, "expected a Block or None");
    uint32_t mask = (uint32_t)PyLong_AsUnsignedLong(args[3]);
    if (PyErr_Occurred())
        return NULL;
    Py_ssize_t before = self->held.count;
    PyObject *group = args[0] == Py_None ? NULL : or_null(((Block *)args[0])->group);
    Index index;
    int ok = start_index(&index, &self->held, size_of(args[0]) + size_of(args[1]) + size_of(args[2]));
    if (ok == DONE && args[2] != Py_None)
        ok = add_session(&index, &((Block *)args[2])->held, mask);
    if (ok == DONE && args[0] != Py_None)
        ok = add_message(&index, (Block *)args[0], group, 1);
    if (ok == DONE && args[1] != Py_None)
        ok = add_message(&index, (Block *)args[1], group, 0);
    end_index(&index);
    return ok == DONE ? PyLong_FromSsize_t(self->held.count - before) : NULL;
}

/* Make the bitmap of a column: None where no row is null. */
static PyObject *bitmap(const Entries *rows, int column, int has_nulls)
{
    Py_ssize_t size = (rows->count + 7) / 8;
    if (!has_nulls)
        return Py_NewRef(Py_None);
    PyObject *made = PyByteArray_FromStringAndSize(NULL, size);
    if (!made)
        return NULL;
    uint8_t *bits = (uint8_t *)PyByteArray_AS_STRING(made);
    memset(bits, 0, (size_t)size);
    for (Py_ssize_t i = 0; i < rows->count; i++)
        bits[i >> 3] |= (uint8_t)((rows->entries[i].valid >> column & 1) << (i & 7));
    return made;
}

/* Make the numbers of a column: (values, bitmap | None). */
static PyObject *numbers(const Entries *rows, int column, int width, int has_nulls)
{
    PyObject *values = PyByteArray_FromStringAndSize(NULL, rows->count * width);
    PyObject *bits = values ? bitmap(rows, column, has_nulls) : NULL;
    if (!bits) {
        Py_XDECREF(values);
        return NULL;
    }
    char *to = PyByteArray_AS_STRING(values);
    for (Py_ssize_t i = 0; i < rows->count; i++) {
        const Entry *row = rows->entries + i;
        int64_t number = row->valid >> column & 1 ? row->values[column].number : 0;
        switch (width) { /* copies of a fixed size take no call */
        case 2:
            memcpy(to + i * 2, &number, 2);
            break;
        case 4:
            memcpy(to + i * 4, &number, 4);
            break;
        default:
            memcpy(to + i * 8, &number, 8);
        }
    }
    return Py_BuildValue("NN", values, bits);
}

static PyObject *texts(const Entries *rows, int column)
{
    PyObject *made = PyList_New(rows->count);
    for (Py_ssize_t i = 0; made && i < rows->count; i++) {
        const Entry *row = rows->entries + i;
        int is_text = row->valid & row->texts & (1u << column);
        PyList_SET_ITEM(made, i, Py_NewRef(is_text ? row->values[column].text : Py_None));
    }
    return made;
}

/* Make all columns: None for one that is null in every row. */
static PyObject *columns_of(const Entries *rows, const char *widths)
{
    uint32_t any = 0, all = ~(uint32_t)0;
    for (Py_ssize_t i = 0; i < rows->count; i++) {
        any |= rows->entries[i].valid;
        all &= rows->entries[i].valid;
    }
    PyObject *columns = PyList_New(COLUMNS);
    for (int i = 0; columns && i < COLUMNS; i++) {
        PyObject *made = NULL;
        if (!(any >> i & 1))
            made = Py_NewRef(Py_None);
        else if (widths[i])
            made = numbers(rows, i, widths[i], !(all >> i & 1));
        else
            made = texts(rows, i);
        if (!made)
            Py_CLEAR(columns);
        else
            PyList_SET_ITEM(columns, i, made);
    }
    return columns;
}

static PyObject *flags(const Entries *rows, size_t offset)
{
    PyObject *made = PyByteArray_FromStringAndSize(NULL, rows->count);
    for (Py_ssize_t i = 0; made && i < rows->count; i++)
        PyByteArray_AS_STRING(made)[i] = ((const char *)(rows->entries + i))[offset];
    return made;
}

/* List the distinct objects of an array, and which of them each is: (list, int32 in a bytearray). NULL is None. */
static PyObject *distinct(const char *at, size_t stride, Py_ssize_t count)
{
    PyObject *found = PyList_New(0), *known = PyDict_New(), *last = NULL;
    PyObject *made = PyByteArray_FromStringAndSize(NULL, count * 4);
    int ok = found && known && made;
    int32_t index = 0;
    for (Py_ssize_t i = 0; ok && i < count; i++, at += stride) {
        PyObject *one, *number;
        memcpy(&one, at, sizeof one);
        one = one ? one : Py_None;
        if (one != last) {
            last = one;
            if ((number = PyDict_GetItemWithError(known, one)))
                index = (int32_t)PyLong_AsLong(number);
            else {
                index = (int32_t)PyList_GET_SIZE(found);
                number = PyErr_Occurred() ? NULL : PyLong_FromLong(index);
                ok = number && PyDict_SetItem(known, one, number) == 0 && PyList_Append(found, one) == 0;
                Py_XDECREF(number);
            }
        }
        memcpy(PyByteArray_AS_STRING(made) + i * 4, &index, 4);
    }
    Py_XDECREF(known);
    if (!ok) {
        Py_CLEAR(found);
        Py_CLEAR(made);
    }
    return Py_BuildValue("NN", found, made);
}

static PyObject *objects(const Entries *rows, size_t offset)
{
    return distinct((const char *)rows->entries + offset, sizeof(Entry), rows->count);
}

static PyObject *partitions(const Entries *rows)
{
    PyObject *made = PyByteArray_FromStringAndSize(NULL, rows->count * 4);
    for (Py_ssize_t i = 0; made && i < rows->count; i++)
        memcpy(PyByteArray_AS_STRING(made) + i * 4, &rows->entries[i].partition, 4);
    return made;
}

/* take(widths: bytes) -> Taken */
static PyObject *rows_take(Rows *self, PyObject *widths)
{
    if (!PyBytes_Check(widths) || PyBytes_GET_SIZE(widths) != COLUMNS)
        return PyErr_Format(PyExc_ValueError, "take() expects %d widths", COLUMNS);
    const char *width = PyBytes_AS_STRING(widths);
    for (int i = 0; i < COLUMNS; i++)
        if (width[i] && width[i] != 2 && width[i] != 4 && width[i] != 8)
            return PyErr_Format(PyExc_ValueError, "invalid width %d", width[i]);
    PyObject *columns = columns_of(&self->held, width);
    if (!columns)
        return NULL;
    PyObject *made = Py_BuildValue(
        "NNNNNNN", objects(&self->held, offsetof(Entry, topic)), objects(&self->held, offsetof(Entry, group)),
        partitions(&self->held), flags(&self->held, offsetof(Entry, requested)),
        flags(&self->held, offsetof(Entry, responded)), flags(&self->held, offsetof(Entry, in_session)), columns);
    if (made)
        drop_all(&self->held);
    return made;
}

static PyObject *rows_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(names))
{
    return PyArg_ParseTuple(args, "") ? type->tp_alloc(type, 0) : NULL;
}

static void rows_dealloc(Rows *self)
{
    release_all(&self->held);
    Py_TYPE(self)->tp_free(self);
}

static Py_ssize_t rows_len(Rows *self) { return self->held.count; }

static PyMethodDef rows_methods[] = {
    {"add", (PyCFunction)(void (*)(void))rows_add, METH_FASTCALL, NULL},
    {"take", (PyCFunction)rows_take, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

static PySequenceMethods rows_sequence = {.sq_length = (lenfunc)rows_len};

static PyTypeObject RowsType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "kafkawire.capture.tables.extraction.blocks.Rows",
    .tp_basicsize = sizeof(Rows),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "Rows of partitions, not returned yet.",
    .tp_new = rows_new,
    .tp_dealloc = (destructor)rows_dealloc,
    .tp_methods = rows_methods,
    .tp_as_sequence = &rows_sequence,
};

/* -- bodies of exchanges */

typedef struct {
    char *data;
    size_t size, room;
} Buffer;

static int put(Buffer *to, const void *data, size_t size)
{
    if (size > to->room - to->size) {
        size_t room = to->room + (to->room > size ? to->room : size + 64);
        char *longer = PyMem_Realloc(to->data, room);
        if (!longer) {
            PyErr_NoMemory();
            return FAILED;
        }
        to->data = longer;
        to->room = room;
    }
    if (size)
        memcpy(to->data + to->size, data, size);
    to->size += size;
    return DONE;
}

/* Return the content, and start anew. */
static PyObject *taken(Buffer *from)
{
    PyObject *made = PyByteArray_FromStringAndSize(from->data, (Py_ssize_t)from->size);
    from->size = 0;
    return made;
}

enum { PARTITIONS_OF = SETS, LISTS }; /* a list of topics, too: those of requested partitions */
enum { ENDS, PARTITION_ENDS = LISTS, NUMBERS_OF, IS_FETCH, IS_COMPLETE, BUFFERS };

typedef struct {
    PyObject_HEAD
    PyObject *items[LISTS];  /* the elements of all lists of a kind */
    Buffer buffers[BUFFERS]; /* the end of each list by kind, then the rest */
    int numbers;             /* how many are shown */
    Buffer values[MAX_NUMBERS], is_stated[MAX_NUMBERS];
} Bodies;

static int put_byte(Bodies *self, int buffer, int value)
{
    uint8_t byte = (uint8_t)value;
    return put(self->buffers + buffer, &byte, 1);
}

static int end_list(Bodies *self, int kind)
{
    int32_t end = (int32_t)PyList_GET_SIZE(self->items[kind]);
    return put(self->buffers + ENDS + kind, &end, 4);
}

/* Add the distinct ones of up to three lists. */
static int put_union(Bodies *self, int kind, PyObject *const *lists)
{
    Distinct all = {self->items[kind], NULL};
    Py_ssize_t first = PyList_GET_SIZE(all.list);
    int ok = DONE;
    for (int i = 0; ok == DONE && i < 3; i++) {
        if (lists[i] && PyList_GET_SIZE(all.list) == first) {
            ok = PyList_SetSlice(all.list, first, first, lists[i]) < 0 ? FAILED : DONE;
            continue;
        }
        for (Py_ssize_t at = 0; ok == DONE && lists[i] && at < PyList_GET_SIZE(lists[i]); at++)
            ok = add_distinct(&all, first, PyList_GET_ITEM(lists[i], at));
    }
    Py_XDECREF(all.seen);
    return ok == DONE ? end_list(self, kind) : ok;
}

static int put_numbers(Bodies *self, const Block *sent, const Block *received)
{
    for (int i = 0; i < self->numbers; i++) {
        long long number = received ? received->numbers[i] : NO_NUMBER;
        if (number == NO_NUMBER && sent)
            number = sent->numbers[i];
        int32_t value = number == NO_NUMBER ? 0 : (int32_t)number;
        uint8_t is_stated = number != NO_NUMBER;
        TRY(put(self->values + i, &value, 4));
        TRY(put(self->is_stated + i, &is_stated, 1));
    }
    return DONE;
}

/* Add the requested partitions by topic. */
static int put_partitions(Bodies *self, const Block *block)
{
    PyObject *topics = block ? block->by_topic.topics : NULL, *all = self->items[PARTITIONS_OF];
    Buffer *numbers = self->buffers + NUMBERS_OF;
    for (Py_ssize_t i = 0; topics && i < PyList_GET_SIZE(topics); i++) {
        int32_t end = (int32_t)(numbers->size / 4) + block->by_topic.ends[i];
        if (PyList_Append(all, PyList_GET_ITEM(topics, i)) < 0)
            return FAILED;
        TRY(put(self->buffers + PARTITION_ENDS, &end, 4));
    }
    if (topics)
        TRY(put(numbers, block->by_topic.numbers, (size_t)block->held.count * 4));
    return end_list(self, PARTITIONS_OF);
}

static int add_exchange(Bodies *self, Block *sent, Block *received, Block *session, int is_complete)
{
    Block *requested = session ? session : sent;
    if (requested)
        TRY(find_by_topic(requested));
    for (int kind = 0; kind < SETS; kind++) {
        PyObject *lists[] = {sent ? sent->sets[kind].list : NULL, received ? received->sets[kind].list : NULL,
                             session && kind == TOPICS ? session->by_topic.known : NULL};
        TRY(put_union(self, kind, lists));
    }
    TRY(put_partitions(self, requested));
    TRY(put_numbers(self, sent, received));
    TRY(put_byte(self, IS_FETCH, session != NULL));
    return put_byte(self, IS_COMPLETE, is_complete);
}

/* add(request: Block | None, response: Block | None, session: Block | None, is_complete: bool) */
static PyObject *bodies_add(Bodies *self, PyObject *const *args, Py_ssize_t given)
{
    Block *blocks[3];
    if (given != 4)
        return PyErr_Format(PyExc_TypeError, "add() expects three blocks and a bool");
    for (int i = 0; i < 3; i++) {
        if (args[i] != Py_None && !Py_IS_TYPE(args[i], &BlockType))
            return PyErr_Format(PyExc_TypeError, "expected a Block or None");
        blocks[i] = (Block *)or_null(args[i]);
    }
    if (add_exchange(self, blocks[0], blocks[1], blocks[2], args[3] == Py_True) != DONE)
        return NULL;
    Py_RETURN_NONE;
}

/* Start with no exchanges: the first list of each kind begins at 0. */
static int start_bodies(Bodies *self)
{
    static const int32_t zero = 0;
    for (int i = 0; i < LISTS; i++) {
        Py_XSETREF(self->items[i], PyList_New(0));
        if (!self->items[i])
            return FAILED;
        TRY(put(self->buffers + ENDS + i, &zero, 4));
    }
    return put(self->buffers + PARTITION_ENDS, &zero, 4);
}

/* take() -> TakenBodies */
static PyObject *bodies_take(Bodies *self, PyObject *Py_UNUSED(none))
{
    PyObject *buffers = PyTuple_New(BUFFERS), *items = PyTuple_New(LISTS), *numbers = PyTuple_New(self->numbers);
    int ok = buffers && items && numbers;
    for (int i = 0; ok && i < BUFFERS; i++) {
        PyObject *made = taken(self->buffers + i);
        PyTuple_SET_ITEM(buffers, i, made);
        ok = made != NULL;
    }
    for (int i = 0; ok && i < LISTS; i++) {
        PyObject *all = self->items[i];
        PyObject *made = distinct((const char *)&PyList_GET_ITEM(all, 0), sizeof(PyObject *), PyList_GET_SIZE(all));
        PyTuple_SET_ITEM(items, i, made);
        ok = made != NULL;
    }
    for (int i = 0; ok && i < self->numbers; i++) {
        PyObject *pair = Py_BuildValue("NN", taken(self->values + i), taken(self->is_stated + i));
        PyTuple_SET_ITEM(numbers, i, pair);
        ok = pair != NULL;
    }
    if (!ok || start_bodies(self) != DONE) {
        Py_CLEAR(buffers);
        Py_CLEAR(items);
        Py_CLEAR(numbers);
    }
    return Py_BuildValue("NNN", items, buffers, numbers);
}

static void bodies_dealloc(Bodies *self)
{
    for (int i = 0; i < LISTS; i++)
        Py_XDECREF(self->items[i]);
    for (int i = 0; i < BUFFERS; i++)
        PyMem_Free(self->buffers[i].data);
    for (int i = 0; i < MAX_NUMBERS; i++) {
        PyMem_Free(self->values[i].data);
        PyMem_Free(self->is_stated[i].data);
    }
    Py_TYPE(self)->tp_free(self);
}

static PyObject *bodies_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(names))
{
    int count;
    if (!PyArg_ParseTuple(args, "i", &count))
        return NULL;
    if (count < 0 || count > MAX_NUMBERS)
        return too_many_numbers();
    PyObject *made = type->tp_alloc(type, 0);
    if (made && start_bodies((Bodies *)made) != DONE)
        Py_CLEAR(made);
    if (made)
        ((Bodies *)made)->numbers = count;
    return made;
}

static Py_ssize_t bodies_len(Bodies *self) { return (Py_ssize_t)self->buffers[IS_FETCH].size; }

static PyMethodDef bodies_methods[] = {
    {"add", (PyCFunction)(void (*)(void))bodies_add, METH_FASTCALL, NULL},
    {"take", (PyCFunction)bodies_take, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PySequenceMethods bodies_sequence = {.sq_length = (lenfunc)bodies_len};

static PyTypeObject BodiesType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "kafkawire.capture.tables.extraction.blocks.Bodies",
    .tp_basicsize = sizeof(Bodies),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "What the bodies of exchanges show, not returned yet.",
    .tp_new = bodies_new,
    .tp_dealloc = (destructor)bodies_dealloc,
    .tp_methods = bodies_methods,
    .tp_as_sequence = &bodies_sequence,
};

static int fill_module(PyObject *module)
{
    PyTypeObject *types[] = {&ProgramType, &BlockType, &ReaderType, &RowsType, &BodiesType};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (PyModule_AddType(module, types[i]) < 0)
            return -1;
    static const struct {
        const char *name;
        int value;
    } numbers[] = {{"COLUMNS", COLUMNS}, {"MAX_NUMBERS", MAX_NUMBERS}, {"NO_SESSION", NO_SESSION}, {"ENTITIES", ENTITIES}, {"PARTITION_VALUES", PARTITION_VALUES}, {"FIELDS", FIELDS}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (PyModule_AddIntConstant(module, numbers[i].name, numbers[i].value) < 0)
            return -1;
    return 0;
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, fill_module}, {0, NULL}};

static PyModuleDef module = {PyModuleDef_HEAD_INIT, .m_name = "kafkawire.capture.tables.extraction.blocks", .m_slots = slots};

PyMODINIT_FUNC PyInit_blocks(void) { return PyModuleDef_Init(&module); }
