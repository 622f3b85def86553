-- Divides a TCP stream into frames, and shows each.
-- Never more bytes than a frame says; content never ends in an error of Lua.

local MAX_SIZE = 117440512 -- 112 MiB, more than a broker accepts
local MIN_REQUEST, MIN_RESPONSE = 8, 4

local function describe(pinfo, root, text)
  pinfo.cols.protocol = COLUMN
  if pinfo.private[NAME] == tostring(pinfo.number) then
    pinfo.cols.info:append(", " .. text)
  else
    pinfo.cols.info = text
    pinfo.private[NAME] = tostring(pinfo.number)
  end
  root:append_text(", " .. text)
end

local function add_errors(c, root)
  for _, code in ipairs(c.errors) do
    local item = add(c, root, own.error, 0, 0, code)
    if item then item:set_generated() end
  end
end

local function add_notes(c, root)
  for _, text in ipairs(c.notes) do root:add_proto_expert_info(EXPERTS.deviation, text) end
  if c.budget.hidden then
    undecodable(root, ("the tree shows the first %d items of this message"):format(prefs.max_items))
  end
end

local function add_direction(c, tree, direction)
  local item = add(c, tree, own.direction, 0, 0, direction)
  if item then item:set_generated() end
end

local function title(key, version, direction)
  local api = MESSAGES[key]
  local name = api and api.name or ("unknown API %d"):format(key)
  return ("%s v%d %s"):format(name, version, direction == REQUEST and "Request" or "Response")
end

local function show_body(c, root, key, version, direction)
  local api = MESSAGES[key]
  local side = api and api[direction]
  if not is_known(side, version) then
    undecodable(root, side and ("version %d is not among %d to %d"):format(version, side[1], side[2])
      or ("unknown API key %d"):format(key))
    return add_undecoded(c, root)
  end
  if direction == RESPONSE then version = response_version(c, api, version) end
  read_body(c, root, side, version)
end

local function show_token(c, pinfo, root, direction)
  add_direction(c, root, direction)
  add(c, root, own.sasl_token, c.pos, c.stop - c.pos)
  describe(pinfo, root, "SASL token " .. (direction == REQUEST and "to" or "from") .. " broker")
end

local function show_request(c, pinfo, root, stream, where)
  local header = add(c, root, own.header, 4, 0)
  local ok, key, version, correlation_id = pcall(read_request_header, c, header)
  if not ok then
    add_direction(c, root, REQUEST)
    describe(pinfo, root, "Malformed request")
    malformed(root, type(key) == "table" and key or { reason = tostring(key), where = "", at = 0 })
    return add_undecoded(c, root)
  end
  if header then header:set_len(c.pos - 4) end
  describe(pinfo, root, title(key, version, REQUEST))
  add_direction(c, root, REQUEST)
  if not pinfo.visited then kept[where] = add_exchange(stream, pinfo, key, version, correlation_id) end
  add_links(c, root, kept[where], true)
  show_body(c, root, key, version, REQUEST)
  if not pinfo.visited and c.values.Acks == 0 and APIS[key] == "Produce" then
    forget_unanswered(stream, correlation_id, kept[where])
  end
end

local function add_request_facts(c, tree, exchange)
  for _, fact in ipairs({ { "api_key", exchange.key }, { "api_version", exchange.version } }) do
    local item = add(c, tree, own[fact[1]], 0, 0, fact[2])
    if item then item:set_generated() end
  end
end

local function show_response(c, pinfo, root, stream, where)
  local correlation_id = i32(part(c, 4, 4))
  if not pinfo.visited then kept[where] = take_exchange(stream, pinfo, correlation_id) end
  local exchange = kept[where]
  local api = exchange and MESSAGES[exchange.key]
  local header = add(c, root, own.header, 4, 0)
  local ok, fault = attempt(read_response_header, c, header, api, exchange and exchange.version or 0)
  if header then header:set_len(c.pos - 4) end
  add_direction(c, root, RESPONSE)
  if not exchange then
    describe(pinfo, root, "Response")
    undecodable(root, "the request of this response was not captured")
    return add_undecoded(c, root)
  end
  add_request_facts(c, header, exchange)
  describe(pinfo, root, title(exchange.key, exchange.version, RESPONSE))
  add_links(c, root, exchange, false)
  if not ok then
    malformed(root, fault)
    return add_undecoded(c, root)
  end
  show_body(c, root, exchange.key, exchange.version, RESPONSE)
  if not pinfo.visited and exchange.version == 0 and APIS[exchange.key] == "SaslHandshake" then
    stream.tokens = c.values.ErrorCode == 0
  end
end

local function is_token(c, pinfo, stream, where, to_broker)
  if pinfo.visited then return kept[where] == "token" end
  if not stream.tokens then return false end
  if to_broker and is_request(context(c.data, c.tvb, c.base, 4, c.stop), c.stop - 4) then
    stream.tokens = false
    return false
  end
  kept[where] = "token"
  return true
end

local function show_frame(c, pinfo, root, stream, where, to_broker)
  add(c, root, own.length, 0, 4)
  if is_token(c, pinfo, stream, where, to_broker) then
    return show_token(c, pinfo, root, to_broker and REQUEST or RESPONSE)
  end
  local show = to_broker and show_request or show_response
  show(c, pinfo, root, stream, where)
end

-- `missing`: bytes at the end of the frame that were not captured.
local function dissect_frame(tvb, offset, length, missing, pinfo, tree, stream, to_broker)
  local range = tvb(offset, length)
  local root = tree:add(PROTOCOL, range)
  local c = context(range:raw(), tvb, offset, 4, length)
  c.missing = missing
  c.budget.text = root.visible ~= false
  local ok, fault = attempt(show_frame, c, pinfo, root, stream, place(pinfo, offset, length), to_broker)
  if not ok then malformed(root, fault) end
  add_errors(c, root)
  add_notes(c, root)
end

local function show_rest(tvb, offset, pinfo, tree, reason)
  local root = tree:add(PROTOCOL, tvb(offset))
  root:add(own.undecoded, tvb(offset))
  root:add_proto_expert_info(EXPERTS.malformed, reason)
  describe(pinfo, root, "Not a frame")
end

local function size_at(tvb, offset)
  return tvb(offset, 4):int()
end

-- A response that no request waits for, and that is not complete, is believed up to this size.
local MAX_UNEXPECTED = 1048576

local function is_frame(tvb, offset, size, stream, to_broker, wanted)
  local least = stream.tokens and 0 or to_broker and MIN_REQUEST or MIN_RESPONSE
  if size < least or size > MAX_SIZE then return false end
  if stream.tokens then return true end
  local left = tvb:len() - offset
  local length = math.min(left, size + 4)
  if to_broker then
    local c = context(tvb:raw(offset, length), tvb, offset, 4, length)
    return plausible_header(c, size, wanted)
  end
  if length < 8 or size + 4 <= left or size <= MAX_UNEXPECTED then return true end
  return stream.pending[tvb(offset + 4, 4):int()] ~= nil
end

-- The first frame of a connection that is not known yet: sets the broker, or returns false.
local function begin(tvb, pinfo, stream, to_broker)
  local guess = to_broker ~= false
  local wanted = to_broker == nil and KNOWN_VERSIONS or KNOWN_APIS
  if not is_frame(tvb, 0, size_at(tvb, 0), stream, guess, wanted) then return false end
  if tvb:len() < 14 and tvb:len() < size_at(tvb, 0) + 4 then return true end -- too few bytes to know
  stream.broker = guess and endpoint(pinfo.dst, pinfo.dst_port) or endpoint(pinfo.src, pinfo.src_port)
  return true
end

-- How many bytes the frame at `offset` lacks; nil if it is not a frame. What the first pass finds is kept.
local function missing_bytes(tvb, offset, pinfo, stream, to_broker)
  local left = tvb:len() - offset
  if left < 4 then return DESEGMENT_ONE_MORE_SEGMENT end
  local size = size_at(tvb, offset)
  local where = ("rest/%d/%d/%d/%d"):format(pinfo.number, offset, tvb:len(), pinfo.src_port)
  if pinfo.visited then
    if kept[where] then return nil end
  elseif not is_frame(tvb, offset, size, stream, to_broker, stream.broker and ANY_API or KNOWN_APIS) then
    kept[where] = true
    return nil
  end
  return math.max(0, size + 4 - left)
end

-- Shows the frames of a segment; returns the number of bytes, or 0 if they are not Kafka's.
local function dissect_segment(tvb, pinfo, tree, stream)
  local offset, length = 0, tvb:len()
  local to_broker = is_to_broker(stream, pinfo)
  if not stream.broker and length < 4 and to_broker ~= nil and pinfo.can_desegment > 0 then
    pinfo.desegment_offset, pinfo.desegment_len = 0, DESEGMENT_ONE_MORE_SEGMENT
    return length
  end
  if not stream.broker then
    if length < 4 or to_broker == nil and length < 14 then return 0 end
    if not begin(tvb, pinfo, stream, to_broker) then return 0 end
    to_broker = to_broker ~= false
  end
  while offset < length do
    local missing = missing_bytes(tvb, offset, pinfo, stream, to_broker)
    if missing == nil then
      show_rest(tvb, offset, pinfo, tree, "these bytes are not the beginning of a frame")
      return length
    end
    if missing > 0 then
      if pinfo.can_desegment == 0 then
        if length - offset >= 12 then
          dissect_frame(tvb, offset, length - offset, missing, pinfo, tree, stream, to_broker)
        else
          show_rest(tvb, offset, pinfo, tree, "the frame is incomplete")
        end
        return length
      end
      pinfo.desegment_offset, pinfo.desegment_len = offset, missing
      return length
    end
    local size = size_at(tvb, offset)
    dissect_frame(tvb, offset, size + 4, 0, pinfo, tree, stream, to_broker)
    offset = offset + 4 + size
  end
  return length
end

function PROTOCOL.dissector(tvb, pinfo, tree)
  if tvb:len() == 0 then return 0 end
  return dissect_segment(tvb, pinfo, tree, stream_of(pinfo))
end

local function is_detected(tvb)
  local length = tvb:len()
  if not prefs.heuristics or length < 14 then return false end
  local size = size_at(tvb, 0)
  if size < MIN_REQUEST or size > MAX_SIZE then return false end
  local stop = math.min(size + 4, length)
  return is_request(context(tvb:raw(0, stop), tvb, 0, 4, stop), size)
end

-- Kafka in TCP: Wireshark calls the dissector for all later segments.
local function detect_tcp(tvb, pinfo, tree)
  if not is_detected(tvb) then return false end
  local stream = stream_of(pinfo)
  if not stream.broker then stream.broker = endpoint(pinfo.dst, pinfo.dst_port) end
  pinfo.conversation = PROTOCOL
  return dissect_segment(tvb, pinfo, tree, stream) > 0
end

-- Kafka in TLS: the connection stays TLS's, which requests each part.
local function detect_tls(tvb, pinfo, tree)
  local stream = stream_of(pinfo)
  if not stream.in_tls then
    if not is_detected(tvb) then return false end
    stream.in_tls = true
    stream.broker = stream.broker or endpoint(pinfo.dst, pinfo.dst_port)
  end
  return dissect_segment(tvb, pinfo, tree, stream) > 0
end

PROTOCOL:register_heuristic("tcp", detect_tcp)
pcall(function() PROTOCOL:register_heuristic("tls", detect_tls) end)

-- -- ports

local registered = {}

local function register(table_name, ports)
  local found, dissectors = pcall(DissectorTable.get, table_name)
  if not found or not dissectors or registered[table_name] == ports then return end
  if registered[table_name] and registered[table_name] ~= "" then dissectors:remove(registered[table_name], PROTOCOL) end
  if ports ~= "" then dissectors:add(ports, PROTOCOL) end
  registered[table_name] = ports
end

local function register_ports()
  register("tcp.port", tostring(prefs.ports))
  register("tls.port", tostring(prefs.tls_ports))
end

PROTOCOL.prefs_changed = register_ports
register_ports()
