-- Reads values of a message at `c.pos` and adds them to a tree.
-- Every read is compared with the bytes left first; a fault is raised by `fail` and caught by `attempt`. Without a
-- tree a message is only checked.
--
-- c  data: bytes of the frame; missing: bytes after them that were not captured; tvb, base: where they are;
--    pos, stop: from 0; elements: array elements still allowed; where: the field that is read; errors: error codes that
--    were read; index: of an element; budget: items of the tree still allowed, whether some were left out, whether text is wanted beside values

local function context(data, tvb, base, pos, stop)
  return {
    data = data, tvb = tvb, base = base, pos = pos, stop = stop, elements = stop, where = "", missing = 0,
    errors = {}, notes = {}, values = {}, budget = { items = prefs.max_items, hidden = false, text = true },
  }
end

-- "1 byte", "2 bytes"
local function counted(number, noun)
  return ("%.0f %s%s"):format(number, noun, number == 1 and "" or "s")
end

local function fail(c, reason)
  error({ reason = reason, where = c.where, at = c.pos, cut = c.cut }, 0)
end

-- Calls a function that may fail; returns true, or false and the fault.
local function attempt(...)
  local ok, fault = pcall(...)
  if ok then return true end
  if type(fault) ~= "table" then fault = { reason = tostring(fault), where = "", at = 0 } end
  return false, fault
end

local function need(c, n)
  if n > c.stop - c.pos then
    c.cut = true
    fail(c, ("%s wanted, %d left"):format(counted(n, "byte"), c.stop - c.pos))
  end
end

-- A deviation that does not end the message: at most eight are shown.
local function note(c, text)
  if #c.notes < 8 then c.notes[#c.notes + 1] = text end
end

local function is_spent(budget)
  if budget.items <= 0 then
    budget.hidden = true
    return true
  end
  budget.items = budget.items - 1
  return false
end

local function add(c, tree, field, at, length, value)
  if not tree or is_spent(c.budget) then return nil end
  local range = c.tvb(c.base + at, length)
  if value == nil then return tree:add(field, range) end
  return tree:add(field, range, value)
end

local function add_text(c, tree, field, at, length)
  if not tree or is_spent(c.budget) then return nil end
  return (tree:add_packet_field(field, c.tvb(c.base + at, length), ENC_UTF_8))
end

local function add_null(c, tree, at, label, abbrev)
  local item = add(c, tree, own.null, at, c.pos - at, abbrev)
  if item then item:set_text(label .. ": null") end
end

local function u8(c)
  need(c, 1)
  local value = c.data:byte(c.pos + 1)
  c.pos = c.pos + 1
  return value
end

local function i8(c)
  local value = u8(c)
  return value < 128 and value or value - 256
end

local function peek_i16(c)
  need(c, 2)
  local a, b = c.data:byte(c.pos + 1, c.pos + 2)
  local value = a * 256 + b
  return value < 32768 and value or value - 65536
end

local function i16(c)
  local value = peek_i16(c)
  c.pos = c.pos + 2
  return value
end

local function i32(c)
  need(c, 4)
  local a, b, d, e = c.data:byte(c.pos + 1, c.pos + 4)
  c.pos = c.pos + 4
  local value = ((a * 256 + b) * 256 + d) * 256 + e
  return value < 2147483648 and value or value - 4294967296
end

-- An unsigned varint of at most five bytes; as in Kafka, the result is an int32.
local function uvarint(c)
  local value, scale = 0, 1
  for _ = 1, 5 do
    local byte = u8(c)
    if byte < 128 then
      value = (value + byte * scale) % 4294967296
      return value < 2147483648 and value or value - 4294967296
    end
    value = value + (byte - 128) * scale
    scale = scale * 128
  end
  fail(c, "a varint goes on after its fifth byte")
end

-- Kafka's form of a uuid: 22 characters of URL-safe base64.
local BASE64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

local function uuid_text(data, at)
  local made = {}
  for i = at + 1, at + 16, 3 do
    local a, b, d = data:byte(i, math.min(i + 2, at + 16))
    local bits = (a * 256 + (b or 0)) * 256 + (d or 0)
    for shift = 3, b and 0 or 2, -1 do
      local index = math.floor(bits / 64 ^ shift) % 64 + 1
      made[#made + 1] = BASE64:sub(index, index)
    end
  end
  return table.concat(made)
end

-- -- the steps of a struct at a version

local SIZES = { bool = 1, int8 = 1, int16 = 2, uint16 = 2, int32 = 4, uint32 = 4, int64 = 8, float64 = 8, uuid = 16 }
local read_struct, show_records

local function bytes_length(c, step)
  if step.compact then return uvarint(c) - 1 end
  return i32(c)
end

local function string_length(c, step)
  if not step.compact then return i16(c) end
  local length = uvarint(c) - 1
  if length > 32767 then fail(c, ("a string of %d bytes; 32767 is the most"):format(length)) end
  return length
end

local READERS = {}

local function read_fixed(c, step, tree)
  local size = SIZES[step.kind]
  need(c, size)
  if step.kind == "uuid" then
    if tree then add(c, tree, step.field, c.pos, 16, uuid_text(c.data, c.pos)) end
  else
    add(c, tree, step.field, c.pos, size)
    if step.watched then c.values[step.label] = peek_i16(c) end
    if step.errors and #c.errors < 8 then
      local code = peek_i16(c)
      if code ~= 0 and not c.errors[-code - 65536] then
        c.errors[#c.errors + 1] = code
        c.errors[-code - 65536] = true
      end
    end
  end
  c.pos = c.pos + size
end

for kind in pairs(SIZES) do READERS[kind] = read_fixed end

local function non_negative(c, step, tree, at, length)
  if length >= 0 then return true end
  if not step.nullable then fail(c, "null is not allowed") end
  add_null(c, tree, at, step.label, step.abbrev)
  return false
end

function READERS.string(c, step, tree)
  local at = c.pos
  local length = string_length(c, step)
  if non_negative(c, step, tree, at, length) then
    need(c, length)
    add_text(c, tree, step.field, c.pos, length)
    c.pos = c.pos + length
  end
end

function READERS.bytes(c, step, tree)
  local at = c.pos
  local length = bytes_length(c, step)
  if non_negative(c, step, tree, at, length) then
    need(c, length)
    local item = add(c, tree, step.field, c.pos, length)
    if item and length == 0 then item:set_text(step.label .. ": empty") end
    if item and step.kind == "records" then show_records(c, item, c.pos, length) end
    c.pos = c.pos + length
  end
end

READERS.records = READERS.bytes

function READERS.struct(c, step, tree)
  local item = add(c, tree, step.field, c.pos, 0)
  local at = c.pos
  if item and step.is_element and c.budget.text then item:append_text((" [%d]"):format(c.index)) end
  read_struct(c, step.plan, item)
  if item then item:set_len(c.pos - at) end
end

local function read_nullable_struct(c, step, tree)
  local at, present = c.pos, nil
  if step.tagged then present = uvarint(c) > 0 else present = i8(c) >= 0 end
  if present then READERS.struct(c, step, tree) else add_null(c, tree, at, step.label, step.abbrev) end
end

local function read_array(c, step, tree)
  local at = c.pos
  local count = bytes_length(c, step)
  if not non_negative(c, step, tree, at, count) then return end
  if count > c.stop - c.pos then
    c.cut = true
    fail(c, ("an array of %s, %s left"):format(counted(count, "element"), counted(c.stop - c.pos, "byte")))
  end
  c.elements = c.elements - count
  if c.elements < 0 then fail(c, "more array elements than bytes") end
  local item = add(c, tree, own.elements, at, c.pos - at, count)
  if item and c.budget.text then item:set_text(step.label .. ": " .. counted(count, "element")) end
  local read, one = READERS[step.kind], step.element
  for i = 1, count do
    c.index = i - 1
    read(c, one, item)
  end
  if item then item:set_len(c.pos - at) end
end

local function reader_of(row, is_nullable_struct)
  if row.a then return read_array end
  return is_nullable_struct and read_nullable_struct or READERS[row[2]]
end

local function is_among(version, range)
  return range ~= nil and range[1] <= version and version <= range[2]
end

local plan_of

local function step_of(row, version, flexible, tagged)
  local compact = flexible
  if tagged then compact = true elseif row.x then compact = is_among(version, row.x) end
  local nullable = is_among(version, row.n)
  local name = LABELS[row[1]]
  local step = {
    field = FIELDS[row[1]], abbrev = ABBREVS[row[1]], label = name, kind = row[2], nullable = nullable,
    compact = compact, tagged = tagged, errors = row[2] == "int16" and name:sub(-9):lower() == "errorcode",
    watched = row[2] == "int16" and (name == "Acks" or name == "ErrorCode"),
    plan = row.c and plan_of(row, row.c, version, flexible),
  }
  step.read = reader_of(row, nullable and row.c ~= nil)
  if row.a then
    step.element = setmetatable({ nullable = false, is_element = true, read = READERS[row[2]] }, { __index = step })
  end
  return step
end

-- The fields of a struct at a version: in order, and the tagged ones by tag. Made once.
function plan_of(owner, rows, version, flexible)
  local plans = owner.plans
  if not plans then
    plans = {}
    owner.plans = plans
  end
  local plan = plans[version]
  if plan then return plan end
  plan = { tags = {}, elsewhere = {}, flexible = flexible }
  for _, row in ipairs(rows) do
    local tagged = is_among(version, row.t)
    if row[3] <= version and version <= row[4] then
      local step = step_of(row, version, flexible, tagged)
      if tagged then plan.tags[row.tag] = step else plan[#plan + 1] = step end
    elseif row.tag then
      plan.elsewhere[row.tag] = true
    end
  end
  plans[version] = plan
  return plan
end

local function read_unknown_tag(c, tree, at, tag, size)
  if size < 0 then fail(c, "a tagged field of " .. counted(size, "byte")) end
  need(c, size)
  local item = add(c, tree, own.unknown_tag, at, c.pos - at, tag)
  if item then item:set_len(c.pos + size - at) end
  add(c, item, own.unknown_tag_data, c.pos, size)
  c.pos = c.pos + size
end

local function read_tag(c, plan, tree)
  local at = c.pos
  local tag = uvarint(c)
  local size = uvarint(c)
  local step = plan.tags[tag]
  if not step then
    if plan.elsewhere[tag] then note(c, ("tag %d does not exist in this version"):format(tag)) end
    return read_unknown_tag(c, tree, at, tag, size)
  end
  local start = c.pos
  c.where = step.abbrev
  step.read(c, step, tree)
  if c.pos - start ~= size then
    note(c, ("%s: a tagged field of %s takes %d"):format(step.abbrev, counted(size, "byte"), c.pos - start))
  end
end

local function read_tags(c, plan, tree)
  local at = c.pos
  local count = uvarint(c)
  if count < 0 then note(c, ("a negative number of tagged fields (%d)"):format(count)) end
  if count <= 0 then return end
  if count > c.stop - c.pos then
    c.cut = true
    fail(c, ("%s, %s left"):format(counted(count, "tagged field"), counted(c.stop - c.pos, "byte")))
  end
  local item = add(c, tree, own.tagged_fields, at, c.pos - at, count)
  for _ = 1, count do read_tag(c, plan, item) end
  if item then item:set_len(c.pos - at) end
end

function read_struct(c, plan, tree)
  for i = 1, #plan do
    local step = plan[i]
    c.where = step.abbrev
    step.read(c, step, tree)
  end
  if plan.flexible then read_tags(c, plan, tree) end
end
