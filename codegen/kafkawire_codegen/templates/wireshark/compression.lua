-- Decompresses record batches.
-- At most `prefs.max_decompressed` bytes come out. Returns a Tvb and its bytes, or nil and the reason.

local function le32(data, at)
  local a, b, d, e = data:byte(at, at + 3)
  if not e then return nil end
  return ((e * 256 + d) * 256 + b) * 256 + a
end

-- Collects output as numbers; `copy` repeats bytes that came out before, from `start` on.
local function output(limit)
  return { size = 0, start = 0, limit = limit }
end

local function room(out, length)
  if out.size + length > out.limit then error("too large", 0) end
end

local function literal(out, data, at, length)
  if at + length - 1 > #data then error("the data ends", 0) end
  room(out, length)
  local size, last = out.size, at + length - 1
  for i = at, last do
    size = size + 1
    out[size] = data:byte(i)
  end
  out.size = size
  return last + 1
end

local function copy(out, distance, length)
  local size = out.size
  if distance < 1 or distance > size - out.start then error("invalid distance", 0) end
  room(out, length)
  for i = size + 1, size + length do out[i] = out[i - distance] end
  out.size = size + length
end

local function text_of(out)
  local made = {}
  for i = 1, out.size, 4096 do
    made[#made + 1] = string.char(table.unpack(out, i, math.min(i + 4095, out.size)))
  end
  return table.concat(made)
end

local function snappy_block(out, data)
  local at, shift = 1, 0
  repeat -- the uncompressed length
    local byte = data:byte(at) or error("the data ends", 0)
    at, shift = at + 1, shift + 1
  until byte < 128 or shift == 5
  while at <= #data do
    local tag = data:byte(at)
    local kind, rest = tag % 4, math.floor(tag / 4)
    if kind == 0 then
      local extra = rest - 59
      if extra <= 0 then
        at = literal(out, data, at + 1, rest + 1)
      else
        local length = (le32(data:sub(at + 1, at + extra) .. "\0\0\0\0", 1) or 0) + 1
        at = literal(out, data, at + 1 + extra, length)
      end
    elseif kind == 1 then
      copy(out, math.floor(tag / 32) * 256 + (data:byte(at + 1) or 0), rest % 8 + 4)
      at = at + 2
    else
      local size = kind == 2 and 2 or 4
      copy(out, le32(data:sub(at + 1, at + size) .. "\0\0\0\0", 1), rest + 1)
      at = at + 1 + size
    end
  end
end

local JAVA = "\130SNAPPY\0"

-- Streams in the framing of Java's library, one after another, or a raw block.
local function snappy(data, limit)
  local out = output(limit)
  if data:sub(1, 8) ~= JAVA then
    snappy_block(out, data)
    return text_of(out)
  end
  local at = 1
  while at <= #data do
    if data:sub(at, at + 7) == JAVA then
      at = at + 16
      if at > #data + 1 then error("the data ends", 0) end
    else
      local a, b, d, e = data:byte(at, at + 3)
      local size = e and ((a * 256 + b) * 256 + d) * 256 + e
      if not size or at + 3 + size > #data then error("the data ends", 0) end
      out.start = out.size
      snappy_block(out, data:sub(at + 4, at + 3 + size))
      at = at + 4 + size
    end
  end
  return text_of(out)
end

local function lz4_length(data, at, length)
  if length < 15 then return length, at end
  repeat
    local byte = data:byte(at) or error("the data ends", 0)
    length, at = length + byte, at + 1
  until byte < 255
  return length, at
end

local function lz4_block(out, data)
  local at = 1
  while at <= #data do
    local token = data:byte(at)
    local length
    length, at = lz4_length(data, at + 1, math.floor(token / 16))
    at = literal(out, data, at, length)
    if at > #data then return end
    local a, b = data:byte(at, at + 1)
    if not b then error("the data ends", 0) end
    length, at = lz4_length(data, at + 2, token % 16)
    copy(out, b * 256 + a, length + 4)
  end
end

-- Reads a frame and returns where the next begins; checksums are not verified, as those of magic 0 are wrong.
local function lz4_frame(out, data, at)
  local magic = le32(data, at)
  if magic and magic >= 407710288 and magic <= 407710303 then -- a skippable frame
    return at + 8 + (le32(data, at + 4) or #data)
  end
  if magic ~= 407708164 then error("not an LZ4 frame", 0) end
  out.start = out.size
  local flags = data:byte(at + 4) or 0
  local block_checksum, checksum = math.floor(flags / 16) % 2 == 1, math.floor(flags / 4) % 2 == 1
  local has_size, has_dictionary = math.floor(flags / 8) % 2 == 1, flags % 2 == 1
  at = at + 7 + (has_size and 8 or 0) + (has_dictionary and 4 or 0)
  while true do
    local size = le32(data, at)
    if not size then return #data + 1 end
    if size == 0 then return at + 4 + (checksum and 4 or 0) end
    local stored = size >= 2147483648
    if stored then size = size - 2147483648 end
    if at + 3 + size > #data then error("the data ends", 0) end
    local block = data:sub(at + 4, at + 3 + size)
    if stored then literal(out, block, 1, #block) else lz4_block(out, block) end
    at = at + 4 + size + (block_checksum and 4 or 0)
  end
end

local function lz4(data, limit)
  local out, at = output(limit), 1
  repeat at = lz4_frame(out, data, at) until at > #data
  return text_of(out)
end

local function from_lua(decompress)
  return function(range, limit)
    local data = decompress(range:raw(), limit)
    if data == "" then return nil, "" end
    return ByteArray.new(data, true):tvb("Decompressed records"), data
  end
end

-- A function of Wireshark's, if this version has it. It has no limit, so its input has one: a byte of gzip or zstd data
-- may become about a thousand.
local MAX_COMPRESSED = 262144

local function from_wireshark(names, size_of)
  return function(range, limit)
    if range:len() > MAX_COMPRESSED or size_of and size_of(range) > limit then error("too large", 0) end
    for _, name in ipairs(names) do
      local found, method = pcall(function() return range[name] end)
      if found and method then
        local made = method(range, "Decompressed records")
        if not made then error("invalid data", 0) end
        if made:len() > limit then error("too large", 0) end
        return made:tvb(), made:raw()
      end
    end
    error("this version of Wireshark cannot decompress it", 0)
  end
end

-- What gzip data says of its size, in its last four bytes.
local function gzip_size(range)
  return range:len() >= 18 and le32(range:raw(), range:len() - 3) or 0
end

local DECOMPRESSORS = {
  [1] = from_wireshark({ "uncompress_zlib", "uncompress" }, gzip_size),
  [2] = from_lua(snappy),
  [3] = from_lua(lz4),
  [4] = from_wireshark({ "uncompress_zstd" }),
}

local function decompressed(codec, range)
  if not prefs.decompress then return nil, nil, "decompression is off" end
  local decompress = DECOMPRESSORS[codec]
  if not decompress then return nil, nil, ("unknown codec %d"):format(codec) end
  local ok, tvb, data = pcall(decompress, range, prefs.max_decompressed)
  if not ok then return nil, nil, ("%s: %s"):format(CODECS[codec], tostring(tvb)) end
  return tvb, data
end
