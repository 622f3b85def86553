// Puts the page together: filters, theme, sections. Its state is in the address, behind `#`:
// #api=Fetch&client=billing&topic=orders&theme=dark&group=NAME&rows=partitions

const state = document.documentElement.dataset;
const problems = [];

function noteProblem(text) {
  problems.push(text);
  state.errors = problems.join(" | ");
}

window.addEventListener("error", (event) => noteProblem(event.message));
window.addEventListener("unhandledrejection", (event) => noteProblem(String(event.reason)));
document.addEventListener("securitypolicyviolation", (event) => noteProblem(`refused: ${event.violatedDirective} ${event.blockedURI}`));

function theme() {
  return state.theme === "dark" ? "dark" : "light";
}

const systemTheme = window.matchMedia("(prefers-color-scheme: dark)");
let ownTheme = null;

function applyTheme() {
  state.theme = ownTheme ?? (systemTheme.matches ? "dark" : "light");
  byId("theme").textContent = theme() === "dark" ? "Light" : "Dark";
}

// -- filters

function fillFilter(kind) {
  const used = new Set(SERIES.cells.flatMap((cell) => kind === "topic" ? cell[TOPICS] : [cell[kind === "api" ? API : CLIENT]]));
  const place = byId(`filter-${kind}`);
  const options = NAMES[kind].map((name, at) => [String(at), name]);
  if (kind !== "api" && used.has(OTHERS)) options.push([String(OTHERS), "others"]);
  place.append(element("option", { value: ANY, textContent: "all" }),
    ...options.sort((one, two) => one[1].localeCompare(two[1])).map(([value, textContent]) => element("option", { value, textContent })));
  place.onchange = () => { chosen[kind] = place.value; redraw(); writeAddress(); };
}

function readAddress() {
  const text = location.hash.slice(1);
  if (!text.includes("=")) return;
  const given = new URLSearchParams(text);
  for (const kind of FILTERS) {
    const at = NAMES[kind].indexOf(given.get(kind));
    chosen[kind] = at < 0 ? ANY : String(at);
  }
  if (given.has("theme")) ownTheme = given.get("theme");
  const group = DATA.groups.rows.findIndex((one) => one.group === given.get("group"));
  if (group >= 0) byId("group").value = String(group);
  if (given.has("rows")) byId("rows").value = given.get("rows");
  if (given.has("by")) byId("by").value = given.get("by");
}

function writeAddress() {
  const made = new URLSearchParams();
  for (const kind of FILTERS) if (chosenName(kind) !== null) made.set(kind, chosenName(kind));
  if (ownTheme) made.set("theme", ownTheme);
  history.replaceState(null, "", `#${made}`);
}

// -- sections

function tile(value, name) {
  return element("div", { className: "tile" }, element("b", { textContent: value }), element("span", { textContent: name }));
}

function drawOverview() {
  const all = DATA.overview;
  byId("captures").textContent = `${DATA.captures.join(", ")} \u00b7 ${several(all.files, "file")}, ${bytes(all.bytes)}`
    + (all.first ? ` \u00b7 ${time(all.first).slice(0, 19)} UTC for ${all.duration}` : "");
  if (DATA.interrupted) {
    byId("notice").hidden = false;
    byId("notice").textContent = "Reading was interrupted: this page covers the packets read until then.";
  }
  const cells = filteredCells();
  const sum = (at) => cells.reduce((total, cell) => total + cell[at], 0);
  const filtered = FILTERS.some((kind) => chosen[kind] !== ANY);
  const errors = filtered ? sum(ERRORS) : all.errors;
  const responses = filtered ? sum(RESPONSES) : all.responses;
  byId("tiles").replaceChildren(
    tile(count(filtered ? sum(REQUESTS) : all.requests), "requests"), tile(count(responses), "responses"),
    tile(count(errors), `responses with errors${errors ? ` (${share(errors, responses)})` : ""}`),
    ...(filtered ? [tile(bytes(sum(REQUEST_BYTES) + sum(RESPONSE_BYTES)), "requests and responses")] : [
      tile(count(all.without_response), "requests without response"),
      tile(Object.entries(all.connections).map(([kind, number]) => `${count(number)} ${kind}`).join(", ") || "0",
        all.reset ? `connections; ${count(all.reset)} reset` : "connections"),
      tile(count(all.brokers), "brokers"), tile(count(DATA.clients.rows.length + DATA.clients.left_out), "clients"),
      tile(count(all.topics.rows.length + all.topics.left_out), "topics"), tile(count(DATA.groups.rows.length + DATA.groups.left_out), "consumer groups"),
      tile(count(all.packets), "packets"), tile(count(DATA.problems.reduce((total, one) => total + one.count, 0)), "problems in decoding")]));
  drawPayload(all.payload);
  const wantedTopic = chosenName("topic");
  const topics = all.topics.rows.filter((one) => wantedTopic === null || one.topic === wantedTopic);
  const notStored = [countColumn("records refused", "refused_records"), countColumn("records without response", "unanswered_records")]
    .filter((column) => topics.some((one) => column.value(one)));
  table("table-topics", [plainColumn("topic", "topic", { wide: true }), countColumn("partitions", "partitions"),
    countColumn("records produced", "produced_records"), bytesColumn("bytes produced", "produced_bytes"), ...notStored,
    countColumn("records fetched", "fetched_records"), bytesColumn("bytes fetched", "fetched_bytes"),
    { title: "codecs", value: (row) => row.codecs.join(", ") }],
  topics, { noun: "topics", left_out: all.topics.left_out, none: "No records produced or fetched." });
}

function drawPayload(payload) {
  const { captured, missing, ...kinds } = payload;
  const found = Object.entries(kinds).filter(([, size]) => size > 0);
  const bar = element("div", { className: "bar" });
  const legend = element("div", { className: "legend" },
    `${bytes(captured)} of payload captured${missing ? `, ${bytes(missing)} missing` : ""}:`);
  const parts = [2, 7, 3, 8, 6, 4, 1, 5];
  found.forEach(([kind, size], at) => {
    const piece = element("div", { title: `${kind}: ${bytes(size)}` });
    piece.style.flex = `${size} 0 0`;
    piece.style.background = COLOURS[parts[at % parts.length]];
    bar.append(piece);
    const mark = element("i");
    mark.style.background = COLOURS[parts[at % parts.length]];
    legend.append(element("span", {}, mark, `${kind.replaceAll("_", " ")} ${bytes(size)}`));
  });
  byId("payload").replaceChildren(...(captured ? [bar, legend] : []));
}

function drawSlowest() {
  const [api, client, topic] = FILTERS.map(chosenName);
  const found = DATA.slowest.map((one, at) => ({ ...one, id: `exchange-${at}` })).filter((one) =>
    (api === null || one.api === api) && (client === null || one.client === client) && (topic === null || one.topics.includes(topic)));
  table("table-slowest", [
    { title: "latency", number: true, value: (row) => row.latency_ns, text: (row) => duration(row.latency_ns) },
    { title: "API", value: (row) => row.api, text: (row) => row.api, short: true, node: (row) =>
      element("a", { href: `#${row.id}`, textContent: `${row.api}${row.version === null ? "" : ` v${row.version}`}` }) },
    { title: "time", value: (row) => row.time, text: (row) => time(row.time), short: true },
    plainColumn("client", "client"), plainColumn("broker", "broker", { short: true }), { title: "topics", value: (row) => row.topics.join(", "), wide: true },
    { title: "errors", value: (row) => row.errors.join(", "), mark: () => "bad" },
    { title: "request", value: (row) => row.request ? `${row.request.file}:${row.request.packet}` : "" },
  ], found, { noun: "exchanges", none: "No exchanges with a latency pass the filters." });
  byId("bodies").replaceChildren(...found.map(exchangeDetails));
}

function exchangeDetails(one) {
  const made = element("details", { id: one.id }, element("summary", {
    textContent: `${one.api}${one.version === null ? "" : ` v${one.version}`} \u00b7 ${duration(one.latency_ns)} \u00b7 ${one.client} \u00b7 ${time(one.time)}`,
  }));
  made.ontoggle = () => {
    if (made.open && made.children.length === 1) {
      made.append(element("div", { className: "pair" }, message("Request", one.request), message("Response", one.response)));
    }
  };
  return made;
}

function message(title, found) {
  if (!found) return element("div", {}, element("b", { textContent: title }), empty("Not in the captures."));
  const facts = `${found.file} packet ${found.packet} \u00b7 ${bytes(found.bytes)} \u00b7 ${found.status}${found.error ? `: ${found.error}` : ""}`;
  return element("div", {}, element("b", { textContent: title }), element("p", { className: "hint", textContent: facts }),
    element("pre", { textContent: found.body }));
}

function openLinked() {
  const found = /^#exchange-\d+$/.test(location.hash) ? byId(location.hash.slice(1)) : null;
  if (!found) return;
  found.open = true;
  found.scrollIntoView();
}

function drawClients() {
  const wantedClient = chosenName("client");
  const marks = { ready: "good", "not ready": "bad" };
  table("table-clients", [
    { title: "client", value: (row) => row.client || "(no client id)", wide: true }, plainColumn("address", "address", { short: true }),
    plainColumn("software", "software", { short: true }),
    { title: `ready for Kafka ${DATA.clients.target}`, value: (row) => row.ready, mark: (row) => marks[row.ready] ?? "" },
    plainColumn("reason", "reason"), countColumn("connections", "connections"), countColumn("requests", "requests"),
    countColumn("errors", "errors"), bytesColumn("bytes", "bytes"), listColumn("groups", "groups"), listColumn("versions", "versions"),
  ], DATA.clients.rows.filter((one) => wantedClient === null || one.client === wantedClient),
  { noun: "clients", left_out: DATA.clients.left_out, none: "No clients." });
}

function drawFindings() {
  const marks = { critical: "bad", warning: "warn", notice: "" };
  table("table-findings", [
    plainColumn("severity", "severity", { short: true, mark: (row) => marks[row.severity] ?? "" }), plainColumn("rule", "rule", { short: true }),
    plainColumn("who", "who", { wide: true }), plainColumn("what", "what", { wide: true }), countColumn("times", "count"),
    plainColumn("cause", "cause", { wide: true }), plainColumn("what to do", "advice", { wide: true, wider: true }), plainColumn("filter", "filter", { wide: true }),
  ], DATA.findings.rows, {
    noun: "findings", left_out: DATA.findings.left_out, none: "Nothing is wrong, as far as the rules know.", sentences: true,
  });
}

function drawProblems() {
  const rows = DATA.problems.flatMap((one) => one.places.map((place, at) => ({ ...one, ...place, first: at === 0 })));
  table("table-problems", [
    plainColumn("kind", "kind", { short: true }), { title: "count", number: true, value: (row) => row.count, text: (row) => row.first ? count(row.count) : "" },
    { title: "bytes", number: true, value: (row) => row.bytes, text: (row) => row.first ? bytes(row.bytes) : "" },
    { title: "place", value: (row) => `${row.file}:${row.packet}`, wide: true }, plainColumn("error", "error", { wide: true }),
  ], rows, { noun: "places", none: "Every captured byte was decoded, or belongs to another protocol.", sentences: true });
}

function redraw() {
  for (const kind of FILTERS) {
    byId(`filter-${kind}`).value = chosen[kind];
    byId(`filter-${kind}`).classList.toggle("active", chosen[kind] !== ANY);
  }
  const cells = filteredCells();
  drawOverview();
  drawTraffic(cells);
  drawTopology();
  drawLatency(cells);
  drawSplit();
  drawErrors(cells);
  drawPercentiles();
  drawGroups();
  drawSlowest();
  drawClients();
  drawProblems();
  drawFindings();
}

// -- start

async function loadLibrary() {
  const packed = Uint8Array.from(atob(byId("library").textContent), (one) => one.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  document.head.append(element("script", { textContent: await new Response(stream).text() }));
  byId("library").remove();
}

async function start() {
  await loadLibrary();
  FILTERS.forEach(fillFilter);
  byId("group").append(...DATA.groups.rows.map((group, at) => element("option", { value: String(at), textContent: group.group })));
  readAddress();
  applyTheme();
  byId("by").onchange = drawPercentiles;
  byId("group").onchange = drawGroups;
  byId("rows").onchange = drawGroups;
  byId("reset").onclick = () => { FILTERS.forEach((kind) => { chosen[kind] = ANY; }); zoom = null; redraw(); writeAddress(); };
  byId("theme").onclick = () => { ownTheme = theme() === "dark" ? "light" : "dark"; applyTheme(); redraw(); writeAddress(); };
  systemTheme.onchange = () => { applyTheme(); redraw(); };
  window.onhashchange = () => { if (location.hash.includes("=")) { readAddress(); applyTheme(); redraw(); } else openLinked(); };
  window.onresize = drawTopology;
  redraw();
  openLinked();
  state.resources = String(performance.getEntriesByType("resource").length);
  state.ready = "yes";
}

applyTheme();
start();
