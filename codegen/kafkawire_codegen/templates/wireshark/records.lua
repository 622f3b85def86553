-- Shows the record batches of a records field, of magic 0, 1 and 2.
-- A fault in a batch ends that batch; an incomplete last batch is not a fault.

local function undecodable(tree, text)
  if tree then tree:add_proto_expert_info(EXPERTS.undecodable, text) end
end

local function malformed(tree, fault)
  if tree then
    local where = fault.where == "" and "" or fault.where .. ": "
    tree:add_proto_expert_info(EXPERTS.malformed, ("%s%s (at byte %d)"):format(where, fault.reason, fault.at))
  end
end

-- A context over some bytes of another one, which shares its budget.
local function part(c, at, length)
  return {
    data = c.data, tvb = c.tvb, base = c.base, pos = at, stop = at + length, where = "", budget = c.budget,
  }
end

local function over(c, data, tvb)
  return { data = data, tvb = tvb, base = 0, pos = 0, stop = #data, where = "", budget = c.budget }
end

-- A zigzag varint of up to ten bytes, as its low and high 32 bits in two's complement.
local function zigzag(c)
  local low, high, scale = 0, 0, 1
  for i = 1, 10 do
    local byte = u8(c)
    local bits = byte % 128
    if i <= 4 then low = low + bits * scale else high = high + bits * scale end
    scale = i == 4 and 1 or scale * 128
    if byte < 128 then
      local sign = low % 2
      low = (low - sign) / 2 -- 27 bits; `high` has the bits from 28 on, now from 27 on
      local low32 = low + high % 32 * 134217728
      local high32 = math.floor(high / 32) % 2147483648
      if sign == 1 then return 4294967295 - low32, 4294967295 - high32 end
      return low32, high32
    end
  end
  fail(c, "a varint goes on after its tenth byte")
end

local function varint(c)
  local low, high = zigzag(c)
  if high >= 2147483648 then return low - 4294967296 - (4294967295 - high) * 4294967296 end
  return low + high * 4294967296
end

local function int64_at(c, at)
  return c.tvb(c.base + at, 8):int64()
end

local function timestamp_text(value)
  local ms = tonumber(tostring(value))
  if not ms or ms < 0 or ms > 253402300799999 then return "" end
  return os.date("!%Y-%m-%dT%H:%M:%S", math.floor(ms / 1000)) .. (".%03dZ"):format(ms % 1000)
end

local function add_timestamp(c, tree, field, at, length, value)
  local item = add(c, tree, field, at, length, value)
  if item and c.budget.text then item:append_text(" (" .. timestamp_text(value) .. ")") end
end

local function readable(data)
  return #data > 0 and not data:find("[^\32-\126]")
end

-- Bytes with a length that was read; below zero is null.
local function add_sized(c, tree, field, label, at, length)
  if length < 0 then
    return add_null(c, tree, at, label, NAME .. "." .. label)
  end
  need(c, length)
  local item = add(c, tree, field, c.pos, length)
  if item and c.budget.text then
    local text = c.data:sub(c.pos + 1, c.pos + math.min(length, 128))
    if readable(text) then item:append_text((" (%s%s)"):format(text, length > 128 and "..." or "")) end
  end
  c.pos = c.pos + length
end

local function add_control(c, tree, key_at, key_length, value_at, value_length)
  if key_length < 4 then return end
  local key = part(c, key_at, key_length)
  add(c, tree, own.control_version, key_at, 2)
  add(c, tree, own.control_type, key_at + 2, 2)
  i16(key)
  if i16(key) <= 1 and value_length >= 6 then add(c, tree, own.control_coordinator_epoch, value_at + 2, 4) end
end

local function add_headers(c, tree)
  local count = varint(c)
  if count < 0 or count > c.stop - c.pos then
    fail(c, ("%s, %s left"):format(counted(count, "record header"), counted(c.stop - c.pos, "byte")))
  end
  for _ = 1, count do
    local at = c.pos
    local item = add(c, tree, own.record_header, at, 0)
    local length = varint(c)
    if length < 0 then fail(c, "a record header without a key") end
    need(c, length)
    add_text(c, item, own.record_header_key, c.pos, length)
    c.pos = c.pos + length
    local value_at = c.pos
    add_sized(c, item, own.record_header_value, "record_header_value", value_at, varint(c))
    if item then item:set_len(c.pos - at) end
  end
end

-- One record of magic 2; `batch` has its base offset and timestamps.
local function add_record(c, tree, batch)
  local at = c.pos
  local length = varint(c)
  if length < 0 then fail(c, "a record of " .. counted(length, "byte")) end
  need(c, length)
  local r, stop = c, c.stop -- until the end of the record, it is the end of the bytes
  r.stop = c.pos + length
  local item = add(c, tree, own.record, at, r.stop - at)
  local attributes_at = r.pos
  u8(r)
  local time_low, time_high = zigzag(r)
  local time_end = r.pos
  local delta_low, delta_high = zigzag(r)
  if item then
    add(r, item, own.record_offset, time_end, r.pos - time_end, batch.offset + Int64.new(delta_low, delta_high))
    local time = batch.timestamp
    if not batch.log_append_time then time = time + Int64.new(time_low, time_high) end
    add_timestamp(r, item, own.record_timestamp, attributes_at + 1, time_end - attributes_at - 1, time)
  end
  local key_at = r.pos
  local key_length = varint(r)
  local key_start = r.pos
  add_sized(r, item, own.record_key, "record_key", key_at, key_length)
  local value_at = r.pos
  local value_length = varint(r)
  local value_start = r.pos
  add_sized(r, item, own.record_value, "record_value", value_at, value_length)
  if batch.control then add_control(r, item, key_start, key_length, value_start, value_length) end
  add_headers(r, item)
  if r.pos < r.stop then fail(r, counted(r.stop - r.pos, "byte") .. " after the last header") end
  c.stop = stop
end

local function add_records(c, tree, batch, count)
  for _ = 1, count do
    if c.budget.items <= 0 then
      c.budget.hidden = true
      return
    end
    add_record(c, tree, batch)
  end
  if c.pos < c.stop then fail(c, counted(c.stop - c.pos, "byte") .. " after the last record") end
end

local function bit_of(value, bit)
  return math.floor(value / 2 ^ bit) % 2
end

local function add_attributes(c, tree, at, length, attributes)
  local item = add(c, tree, own.batch_attributes, at, length, attributes)
  add(c, item, own.batch_compression, at, length, attributes % 8)
  add(c, item, own.batch_log_append_time, at, length, bit_of(attributes, 3) == 1)
  if length == 2 then
    add(c, item, own.batch_transactional, at, length, bit_of(attributes, 4) == 1)
    add(c, item, own.batch_control, at, length, bit_of(attributes, 5) == 1)
    add(c, item, own.batch_delete_horizon, at, length, bit_of(attributes, 6) == 1)
  end
end

local HEADER = {
  { "batch_base_offset", 0, 8 }, { "batch_length", 8, 4 }, { "batch_partition_leader_epoch", 12, 4 },
  { "batch_magic", 16, 1 }, { "batch_crc", 17, 4 },
}
local HEADER_END = {
  { "batch_last_offset_delta", 23, 4 }, { "batch_base_timestamp", 27, 8 }, { "batch_max_timestamp", 35, 8 },
  { "batch_producer_id", 43, 8 }, { "batch_producer_epoch", 51, 2 }, { "batch_base_sequence", 53, 4 },
  { "batch_records_count", 57, 4 },
}

local function add_fixed(c, tree, at, fields)
  for _, field in ipairs(fields) do add(c, tree, own[field[1]], at + field[2], field[3]) end
end

local function add_batch(c, tree)
  local at = c.pos
  need(c, 61)
  local head = part(c, at + 21, 2)
  local attributes = i16(head) % 65536
  head = part(c, at + 57, 4)
  local count = i32(head)
  add_fixed(c, tree, at, HEADER)
  add_attributes(c, tree, at + 21, 2, attributes)
  add_fixed(c, tree, at, HEADER_END)
  local append_time = bit_of(attributes, 3) == 1
  local batch = {
    offset = int64_at(c, at), timestamp = int64_at(c, append_time and at + 35 or at + 27),
    log_append_time = append_time, control = bit_of(attributes, 5) == 1,
  }
  c.pos = at + 61
  local codec = attributes % 8
  if count < 0 then fail(c, "a batch of " .. counted(count, "record")) end
  if codec == 0 or c.pos == c.stop then return add_records(c, tree, batch, count) end
  local size = c.stop - c.pos
  local item = add(c, tree, own.batch_compressed, c.pos, size)
  if not item then return end
  local tvb, data, reason = decompressed(codec, c.tvb(c.base + c.pos, size))
  if tvb then return add_records(over(c, data, tvb), tree, batch, count) end
  if reason then undecodable(tree, reason) end
end

-- -- magic 0 and 1

local function message_head(c, at)
  local head = part(c, at + 16, 2)
  return i8(head), i8(head) % 256
end

local function int32_at(c, at)
  return i32(part(c, at, 4))
end

-- The offset of the last message of a set inside a compressed message: offsets count from 0 in magic 1.
local function last_offset(c)
  local at, found = c.pos, nil
  while c.stop - at >= 26 do
    local size = int32_at(c, at + 8)
    if size < 14 or size > c.stop - at - 12 then break end
    found, at = at, at + 12 + size
  end
  return found and int64_at(c, found)
end

local add_messages

local function add_legacy(c, tree, wrapper)
  local at = c.pos
  need(c, 26)
  local magic, attributes = message_head(c, at)
  if magic == 1 then need(c, 34) end
  local offset = int64_at(c, at)
  if wrapper and wrapper.base then offset = offset + wrapper.base end
  add(c, tree, own.record_offset, at, 8, offset)
  add(c, tree, own.batch_length, at + 8, 4)
  add(c, tree, own.batch_crc, at + 12, 4)
  add(c, tree, own.batch_magic, at + 16, 1)
  add_attributes(c, tree, at + 17, 1, attributes)
  c.pos = at + 18
  local timestamp
  if magic == 1 then
    timestamp = int64_at(c, at + 18)
    c.pos = at + 26
    local shown = wrapper and wrapper.timestamp or timestamp
    add_timestamp(c, tree, own.record_timestamp, at + 18, 8, shown)
  end
  local key_at = c.pos
  add_sized(c, tree, own.record_key, "record_key", key_at, i32(c))
  local codec = attributes % 8
  local value_at = c.pos
  local length = i32(c)
  if codec == 0 or wrapper or length < 0 then
    return add_sized(c, tree, own.record_value, "record_value", value_at, length)
  end
  need(c, length)
  local item = add(c, tree, own.batch_compressed, c.pos, length)
  local range = c.tvb(c.base + c.pos, length)
  c.pos = c.pos + length
  if not item or length == 0 then return end
  local tvb, data, reason = decompressed(codec, range)
  if not tvb then
    if reason then undecodable(tree, reason) end
    return
  end
  local inner = over(c, data, tvb)
  local made = { timestamp = bit_of(attributes, 3) == 1 and timestamp or nil }
  local last = magic == 1 and tostring(offset) ~= "0" and last_offset(inner) -- a producer leaves 0
  if last then made.base = offset - last end
  add_messages(inner, tree, made)
end

local function add_one(c, tree, wrapper)
  local at, magic = c.pos, (message_head(c, c.pos))
  if magic == 2 and not wrapper then return add_batch(c, tree) end
  if magic == 0 or magic == 1 then
    add_legacy(c, tree, wrapper)
    if c.pos < c.stop then fail(c, counted(c.stop - c.pos, "byte") .. " after the value") end
    return
  end
  add_fixed(c, tree, at, HEADER)
  fail(c, ("unknown magic %d"):format(magic))
end

function add_messages(c, tree, wrapper)
  while c.stop - c.pos >= 17 and c.budget.items > 0 do
    local at, size = c.pos, int32_at(c, c.pos + 8)
    if size < 14 then
      return malformed(tree, { where = NAME .. ".batch_length", reason = ("a batch length of %d"):format(size), at = at + 8 })
    end
    if size > c.stop - at - 12 then break end
    local item = add(c, tree, wrapper and own.record or own.batch, at, 12 + size)
    local one = part(c, at, 12 + size)
    local ok, fault = attempt(add_one, one, item, wrapper)
    if not ok then malformed(item, fault) end
    c.pos = at + 12 + size
  end
  if c.budget.items <= 0 then
    c.budget.hidden = true
  elseif c.pos < c.stop then
    add(c, tree, own.partial_batch, c.pos, c.stop - c.pos)
  end
end

function show_records(c, tree, at, length)
  if length > 0 then add_messages(part(c, at, length), tree, nil) end
end
