-- The protocol, its preferences, and the fields that are of no schema.

local PROTOCOL = Proto(NAME, "Kafka protocol (" .. NAME .. ")")
local FIELDS, ABBREVS, LABELS = {}, {}, {} -- of schemas, by number
local ALL = {}
local COLUMN = NAME:upper()

local prefs = PROTOCOL.prefs
prefs.ports = Pref.range("TCP ports", "9092", "Ports of brokers", 65535)
prefs.tls_ports = Pref.range("TLS ports", "9093", "Ports of brokers whose TLS Wireshark decrypts", 65535)
prefs.heuristics = Pref.bool("Detect on any port", true, "Take connections of other ports that begin with a request")
prefs.decompress = Pref.bool("Decompress record batches", true, "Show the records of compressed batches")
prefs.max_items = Pref.uint("Most items of a message", 100000, "Items beyond this number are left out of the tree")
prefs.max_decompressed = Pref.uint("Most decompressed bytes", 8388608, "Larger batches stay compressed")

local NUMBERS = {
  int8 = ProtoField.int8, int16 = ProtoField.int16, uint16 = ProtoField.uint16, int32 = ProtoField.int32,
  uint32 = ProtoField.uint32, int64 = ProtoField.int64,
}

-- Wireshark documents the description as the fourth argument; 4.0 takes it as the third alone.
local function string_field(abbrev, label, about)
  local ok, field = pcall(ProtoField.string, abbrev, label, about)
  return ok and field or ProtoField.string(abbrev, label, base.UNICODE, about)
end

local function new_field(abbrev, label, kind, values, about)
  if NUMBERS[kind] then return NUMBERS[kind](abbrev, label, base.DEC, values, 0, about) end
  if kind == "bool" then return ProtoField.bool(abbrev, label, base.NONE, nil, 0, about) end
  if kind == "float64" then return ProtoField.double(abbrev, label, about) end
  if kind == "bytes" or kind == "records" then return ProtoField.bytes(abbrev, label, base.NONE, about) end
  if kind == "struct" then return ProtoField.none(abbrev, label, about) end
  return string_field(abbrev, label, about) -- a string, or a uuid in Kafka's form
end

local function declare(name, label, kind, values, about)
  local abbrev = NAME .. "." .. name
  local number = #FIELDS + 1
  FIELDS[number] = new_field(abbrev, label, kind, values, about ~= "" and about or label)
  ABBREVS[number], LABELS[number] = abbrev, label
  ALL[#ALL + 1] = FIELDS[number]
end

local own = {} -- the fields that are of no schema, by name

local function declare_own(name, label, kind, values)
  own[name] = new_field(NAME .. "." .. name, label, kind, values, label)
  ALL[#ALL + 1] = own[name]
end

local function declare_special(name, field)
  own[name] = field
  ALL[#ALL + 1] = field
end

local CODECS = { [0] = "none", [1] = "gzip", [2] = "snappy", [3] = "lz4", [4] = "zstd" }
local CONTROL_TYPES = {
  [0] = "ABORT", [1] = "COMMIT", [2] = "LEADER_CHANGE", [3] = "SNAPSHOT_HEADER", [4] = "SNAPSHOT_FOOTER",
  [5] = "KRAFT_VERSION", [6] = "KRAFT_VOTERS",
}

local function declare_common()
  declare_own("header", "Header", "struct")
  declare_own("length", "Length", "int32")
  declare_own("direction", "Direction", "string")
  declare_own("api_key", "API key", "int16", APIS)
  declare_own("api_version", "API version", "int16")
  declare_own("correlation_id", "Correlation id", "int32")
  declare_own("client_id", "Client id", "string")
  declare_own("error", "Error", "int16", ERRORS)
  declare_own("elements", "Elements", "int32")
  declare_own("null", "Null", "string")
  declare_own("tagged_fields", "Tagged fields", "int32")
  declare_own("unknown_tag", "Unknown tag", "int32")
  declare_own("unknown_tag_data", "Data", "bytes")
  declare_own("undecoded", "Undecoded bytes", "bytes")
  declare_own("sasl_token", "SASL token", "bytes")
  declare_special("response_in", ProtoField.framenum(NAME .. ".response_in", "Response in", base.NONE, frametype.RESPONSE))
  declare_special("request_in", ProtoField.framenum(NAME .. ".request_in", "Request in", base.NONE, frametype.REQUEST))
  declare_special("time", ProtoField.relative_time(NAME .. ".time", "Time from request to response"))
end
declare_common()

local function declare_batches()
  declare_own("batch", "Record batch", "struct")
  declare_own("batch_base_offset", "Base offset", "int64")
  declare_own("batch_length", "Batch length", "int32")
  declare_own("batch_partition_leader_epoch", "Partition leader epoch", "int32")
  declare_own("batch_magic", "Magic", "int8")
  declare_own("batch_crc", "CRC", "uint32")
  declare_own("batch_attributes", "Attributes", "int16")
  declare_own("batch_compression", "Compression", "int8", CODECS)
  declare_own("batch_log_append_time", "Log append time", "bool")
  declare_own("batch_transactional", "Transactional", "bool")
  declare_own("batch_control", "Control batch", "bool")
  declare_own("batch_delete_horizon", "Has a delete horizon", "bool")
  declare_own("batch_last_offset_delta", "Last offset delta", "int32")
  declare_own("batch_base_timestamp", "Base timestamp", "int64")
  declare_own("batch_max_timestamp", "Max timestamp", "int64")
  declare_own("batch_producer_id", "Producer id", "int64")
  declare_own("batch_producer_epoch", "Producer epoch", "int16")
  declare_own("batch_base_sequence", "Base sequence", "int32")
  declare_own("batch_records_count", "Records", "int32")
  declare_own("batch_compressed", "Compressed records", "bytes")
  declare_own("partial_batch", "Incomplete batch", "bytes")
  declare_own("record", "Record", "struct")
  declare_own("record_offset", "Offset", "int64")
  declare_own("record_timestamp", "Timestamp", "int64")
  declare_own("record_key", "Key", "bytes")
  declare_own("record_value", "Value", "bytes")
  declare_own("record_header", "Header", "struct")
  declare_own("record_header_key", "Key", "string")
  declare_own("record_header_value", "Value", "bytes")
  declare_own("control_version", "Control record version", "int16")
  declare_own("control_type", "Control record type", "int16", CONTROL_TYPES)
  declare_own("control_coordinator_epoch", "Coordinator epoch", "int32")
end
declare_batches()

local EXPERTS = {
  malformed = ProtoExpert.new(NAME .. ".malformed", "Malformed message", expert.group.MALFORMED, expert.severity.ERROR),
  deviation = ProtoExpert.new(NAME .. ".deviation", "Deviation from the protocol", expert.group.PROTOCOL, expert.severity.WARN),
  undecodable = ProtoExpert.new(NAME .. ".undecodable", "Not decoded", expert.group.UNDECODED, expert.severity.NOTE),
}
