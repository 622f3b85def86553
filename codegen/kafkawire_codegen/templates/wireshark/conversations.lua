-- Pairs responses with requests, in each TCP connection.
-- What the first pass over a packet finds is kept by frame, so that every later pass shows the same.
--
-- stream  broker: address and port of the broker; pending: correlation id -> exchanges in order;
--         unanswered: the last requests that expect no response, a ring; next: where the next one goes in it;
--         tokens: whether bare SASL tokens are exchanged (after a SaslHandshake of version 0)
-- exchange  key, version, request and response (frames), request_time

local tcp_stream = Field.new("tcp.stream")
local streams, kept = {}, {}
local MAX_PENDING, MAX_UNANSWERED = 100000, 64

function PROTOCOL.init()
  streams, kept = {}, {}
end

local function endpoint(address, port)
  return tostring(address) .. ":" .. port
end

-- The connection of a packet: by addresses and ports, and by its number where Wireshark says it (it does not in a first
-- pass that makes no tree), so that ports can be used again.
local function stream_of(pinfo)
  local one, other = endpoint(pinfo.src, pinfo.src_port), endpoint(pinfo.dst, pinfo.dst_port)
  local key = one < other and one .. " " .. other or other .. " " .. one
  local found = { tcp_stream() }
  local number = #found > 0 and found[#found].value or nil
  local stream = streams[key]
  if not stream or number and stream.number and number ~= stream.number then
    stream = { pending = {}, count = 0, tokens = false, unanswered = {}, next = 1, number = number }
    streams[key] = stream
  end
  return stream
end

local function is_port_of(text, port)
  for first, last in text:gmatch("(%d+)%-?(%d*)") do
    local low = tonumber(first)
    local high = tonumber(last) or low
    if low <= port and port <= high then return true end
  end
  return false
end

local function is_broker_port(port)
  return is_port_of(tostring(prefs.ports), port) or is_port_of(tostring(prefs.tls_ports), port)
end

-- Whether a packet goes to the broker; nil if it cannot be known.
local function is_to_broker(stream, pinfo)
  if stream.broker then return endpoint(pinfo.dst, pinfo.dst_port) == stream.broker end
  local to, from = is_broker_port(pinfo.dst_port), is_broker_port(pinfo.src_port)
  if to ~= from then return to end
  return nil
end

local function place(pinfo, offset, size)
  return ("%d/%d/%d/%d"):format(pinfo.number, offset, size, pinfo.src_port)
end

local function add_exchange(stream, pinfo, key, version, correlation_id)
  local exchange = { key = key, version = version, request = pinfo.number, request_time = pinfo.rel_ts }
  if stream.count >= MAX_PENDING then stream.pending, stream.count = {}, 0 end
  local queue = stream.pending[correlation_id]
  if not queue then
    queue = { first = 1, last = 0 }
    stream.pending[correlation_id] = queue
  end
  queue.last = queue.last + 1
  queue[queue.last] = exchange
  stream.count = stream.count + 1
  return exchange
end

-- Forgets a request without a response when 64 more such requests were sent: a broker may respond nevertheless.
local function forget_unanswered(stream, correlation_id, exchange)
  local oldest = stream.unanswered[stream.next]
  stream.unanswered[stream.next] = { correlation_id, exchange }
  stream.next = stream.next % MAX_UNANSWERED + 1
  local queue = oldest and stream.pending[oldest[1]]
  if queue and queue[queue.first] == oldest[2] then
    queue[queue.first] = nil
    queue.first = queue.first + 1
    stream.count = stream.count - 1
    if queue.last < queue.first then stream.pending[oldest[1]] = nil end
  end
end

local function take_exchange(stream, pinfo, correlation_id)
  local queue = stream.pending[correlation_id]
  if not queue then return nil end
  local exchange = queue[queue.first]
  queue[queue.first] = nil
  queue.first = queue.first + 1
  stream.count = stream.count - 1
  if queue.last < queue.first then stream.pending[correlation_id] = nil end
  exchange.response = pinfo.number
  exchange.time = pinfo.rel_ts - exchange.request_time
  return exchange
end

local function seconds(value)
  local whole = math.floor(value)
  return NSTime.new(whole, math.floor((value - whole) * 1000000000 + 0.5))
end

local function add_links(c, tree, exchange, is_to)
  if not exchange then return end
  local item
  if is_to and exchange.response then
    item = add(c, tree, own.response_in, 0, 0, exchange.response)
  elseif not is_to then
    item = add(c, tree, own.request_in, 0, 0, exchange.request)
    local time = add(c, tree, own.time, 0, 0, seconds(exchange.time))
    if time then time:set_generated() end
  end
  if item then item:set_generated() end
end
