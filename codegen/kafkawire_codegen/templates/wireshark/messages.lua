-- Decodes the headers and bodies of messages.
-- The header version follows from API key and version; the version of a response is that of its request, except that
-- error 35 of ApiVersions comes with a body of version 0 (KIP-511).

local REQUEST, RESPONSE = "request", "response"
local UNSUPPORTED_VERSION = 35
local API_VERSIONS = 18
local MAX_CLIENT_ID = 1024

-- A side: { first, last, first flexible, last flexible, headers, function that makes its fields }
local function is_known(side, version)
  return side ~= nil and side[1] <= version and version <= side[2]
end

-- The header version; that of the nearest version for one that is not known.
local function header_version(side, version, default)
  if not side then return default end
  version = math.max(side[1], math.min(version, side[2]))
  for _, range in ipairs(side[5]) do
    if range[1] <= version and version <= range[2] then return range[3] end
  end
  return default
end

local function body_plan(side, version)
  side.rows = side.rows or side[6]()
  return plan_of(side, side.rows, version, side[3] <= version and version <= side[4])
end

local NO_TAGS = { tags = {}, elsewhere = {}, flexible = true }

-- Reads the header of a request behind its size. Returns key, version, correlation id, client id (nil for null).
local function read_request_header(c, tree)
  c.where = NAME .. ".header"
  add(c, tree, own.api_key, c.pos, 2)
  local key = i16(c)
  add(c, tree, own.api_version, c.pos, 2)
  local version = i16(c)
  add(c, tree, own.correlation_id, c.pos, 4)
  local correlation_id = i32(c)
  local api = MESSAGES[key]
  local header = header_version(api and api.request, version, 1)
  local client_id
  if header >= 1 then
    local at = c.pos
    local length = i16(c)
    if length < 0 then
      add_null(c, tree, at, "Client id", NAME .. ".client_id")
    else
      need(c, length)
      client_id = c.data:sub(c.pos + 1, c.pos + length)
      add_text(c, tree, own.client_id, c.pos, length)
      c.pos = c.pos + length
    end
  end
  if header >= 2 then read_tags(c, NO_TAGS, tree) end
  return key, version, correlation_id, client_id
end

local function read_response_header(c, tree, api, version)
  c.where = NAME .. ".header"
  add(c, tree, own.correlation_id, c.pos, 4)
  local correlation_id = i32(c)
  if header_version(api and api.response, version, 0) >= 1 then read_tags(c, NO_TAGS, tree) end
  return correlation_id
end

-- Whether the rest of the bytes is a body of that version; a fault is the second result.
local function fits(c, side, version)
  local checked = context(c.data, c.tvb, c.base, c.pos, c.stop)
  local ok, fault = attempt(read_struct, checked, body_plan(side, version), nil)
  return ok and checked.pos == checked.stop, fault
end

-- The version in which the body of a response is written.
local function response_version(c, api, version)
  if api.key == API_VERSIONS and version > 0 and c.stop - c.pos >= 2 and is_known(api.response, 0)
    and peek_i16(c) == UNSUPPORTED_VERSION and fits(c, api.response, 0) then
    return 0
  end
  return version
end

local function add_undecoded(c, tree)
  if c.pos < c.stop then add(c, tree, own.undecoded, c.pos, c.stop - c.pos) end
end

local function read_body(c, tree, side, version)
  local ok, fault = attempt(read_struct, c, body_plan(side, version), tree)
  if not ok then
    if c.missing > 0 and fault.cut then
      undecodable(tree, counted(c.missing, "byte") .. " at the end of the frame not captured")
    else
      malformed(tree, fault)
    end
    return add_undecoded(c, tree)
  end
  if c.pos < c.stop then
    note(c, counted(c.stop - c.pos, "byte") .. " after the last field")
    add_undecoded(c, tree)
  end
end

-- -- plausibility of requests

local KNOWN_VERSIONS, KNOWN_APIS, ANY_API = 0, 1, 2 -- how much of a request must be known
local LAST_KEY, LAST_VERSION = 1023, 63 -- of APIs and versions that are not known

-- `most`: bytes of the frame from the client id on, of which some may be missing.
local function plausible_client_id(c, most)
  if c.stop - c.pos < 2 then return true end
  local length = i16(c)
  if length == -1 then return true end
  if length < 0 or length > MAX_CLIENT_ID or length > most - 2 then return false end
  return not c.data:sub(c.pos + 1, math.min(c.pos + length, c.stop)):find("[\0-\31\127]")
end

-- Whether the header of a request of `size` bytes is plausible, as far as it is there.
local function plausible_header(c, size, wanted)
  if size < 8 then return false end
  if c.stop - c.pos < 8 then return true end
  local key, version = i16(c), i16(c)
  local api = MESSAGES[key]
  local request = api and api.request
  if version < 0 or i32(c) < 0 then return false end
  if not request and (wanted < ANY_API or key < 0 or key > LAST_KEY) then return false end
  local last = request and request[2] or LAST_VERSION
  if version > last and (wanted == KNOWN_VERSIONS or version > LAST_VERSION) then return false end
  if header_version(request, version, 1) == 0 then return true end
  return size >= 10 and plausible_client_id(c, size - 8)
end

-- Whether the bytes are a whole request, or, if bytes are missing, the beginning of one that names its client.
local function is_request(c, size)
  local at, whole = c.pos, c.stop - c.pos == size
  if not plausible_header(c, size, KNOWN_VERSIONS) then return false end
  c.pos = at
  local ok, key, version, _, client_id = pcall(read_request_header, c, nil)
  if not ok then return false end
  local side = MESSAGES[key].request
  if not is_known(side, version) then return false end
  local fit, fault = fits(c, side, version)
  if whole then return fit end
  return fault ~= nil and fault.cut == true and client_id ~= nil and client_id ~= "" and c.stop - c.pos >= 8
end
