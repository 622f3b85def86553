-- As much of Wireshark's Lua interface as the dissector uses; every item that is added to a tree is a line of `LINES`.

LINES = {}
base = { DEC = 1, NONE = 0, UNICODE = 2 }
frametype = { REQUEST = 1, RESPONSE = 2 }
expert = { group = { MALFORMED = 1, PROTOCOL = 2, UNDECODED = 3 }, severity = { ERROR = 1, WARN = 2, NOTE = 3 } }
ENC_UTF_8, DESEGMENT_ONE_MORE_SEGMENT = 2, 268435455

local function number_text(value)
  if type(value) == "number" then return ("%.9g"):format(value) end
  return tostring(value)
end

ProtoField = setmetatable({}, { __index = function() return function(abbrev) return { abbrev = abbrev } end end })
ProtoExpert = { new = function(abbrev) return { abbrev = abbrev } end }
Pref = {
  range = function(_, default) return default end,
  bool = function(_, default) return default end,
  uint = function(_, default) return default end,
}
Field = { new = function() return function() return { value = STREAM or 0 } end end }
DissectorTable = { get = function() return { add = function() end, remove = function() end } end }
NSTime = { new = function(seconds, rest) return ("%.0f/%.0f"):format(seconds, rest) end }

function Proto(name)
  DISSECTOR = { name = name, abbrev = name, prefs = {}, register_heuristic = function() end }
  return DISSECTOR
end

-- 64-bit integers as two halves
local Int64_mt = {}
Int64 = {}
function Int64.new(low, high)
  return setmetatable({ low = low, high = high }, Int64_mt)
end
Int64_mt.__index = Int64_mt
Int64_mt.__add = function(a, b)
  local low = a.low + b.low
  local carry = low >= 4294967296 and 1 or 0
  return Int64.new(low % 4294967296, (a.high + b.high + carry) % 4294967296)
end
Int64_mt.__sub = function(a, b)
  return a + Int64.new(4294967295 - b.low, 4294967295 - b.high) + Int64.new(1, 0)
end
Int64_mt.__tostring = function(a)
  if a.high == 0 and a.low < 2147483648 then return ("%.0f"):format(a.low) end
  return ("%.0f:%.0f"):format(a.high, a.low)
end

local Range, Tvb = {}, {}
Range.__index = Range
Tvb.__index = Tvb

local function new_tvb(data)
  return setmetatable({ data = data }, Tvb)
end

function Tvb.__call(self, offset, length)
  length = length or #self.data - offset
  assert(offset >= 0 and length >= 0 and offset + length <= #self.data, "Range is out of bounds")
  assert(offset == math.floor(offset) and length == math.floor(length), "not an integer")
  return setmetatable({ whole = self, offset = offset, length = length }, Range)
end
function Tvb:len() return #self.data end
function Tvb:raw(offset, length) return self(offset, length):raw() end
function Range:raw() return self.whole.data:sub(self.offset + 1, self.offset + self.length) end
function Range:len() return self.length end
function Range:int()
  local a, b, c, d = self:raw():byte(1, 4)
  local value = ((a * 256 + b) * 256 + c) * 256 + d
  return value < 2147483648 and value or value - 4294967296
end
function Range:int64()
  local high = self.whole(self.offset, 4):int() % 4294967296
  return Int64.new(self.whole(self.offset + 4, 4):int() % 4294967296, high)
end
ByteArray = { new = function(data) return { tvb = function() return new_tvb(data) end } end }

local Tree = {}
Tree.__index = Tree
local function new_tree() return setmetatable({}, Tree) end
local function line(...)
  LINES[#LINES + 1] = table.concat({ ... }, " ")
end
function Tree:add(field, range, value)
  local place = ("%.0f+%.0f"):format(range.offset, range.length)
  line(field.abbrev, place, value == nil and range:raw() or number_text(value))
  return new_tree()
end
function Tree:add_packet_field(field, range) return self:add(field, range) end
function Tree:add_proto_expert_info(info, text) line(info.abbrev, text) end
function Tree:set_len(length) line("length", ("%.0f"):format(length)) end
function Tree:set_text(text) line("text", text) end
function Tree:append_text(text) line("text", text) end
function Tree:set_generated() return self end

local function new_columns()
  local values = {}
  local function column(name)
    return { append = function(_, text) values[name] = values[name] .. text end }
  end
  return setmetatable({}, {
    __index = function(_, name) return column(name) end,
    __newindex = function(_, name, text) values[name] = text end,
  })
end

function dissect(data, number, to_broker)
  local pinfo = {
    number = number, rel_ts = number / 1000, visited = false, can_desegment = 2, private = {}, cols = new_columns(),
    src = to_broker and "client" or "broker", dst = to_broker and "broker" or "client",
    src_port = to_broker and 50000 or 9092, dst_port = to_broker and 9092 or 50000,
  }
  return DISSECTOR.dissector(new_tvb(data), pinfo, new_tree())
end
