// Charts over time, and percentiles.

const COLOURS = ["#3b82f6", "#e8862c", "#2fa36b", "#d9534f", "#8b6fd8", "#a0714f", "#d96bb0",
  "#b5a52a", "#29a9b8"];
const SCALES = {
  light: [[0, "#ffffff"], [0.01, "#dbe9fb"], [0.5, "#4f8fdc"], [1, "#0b2e63"]],
  dark: [[0, "#191f28"], [0.01, "#1f3450"], [0.5, "#3f86d8"], [1, "#dcecff"]],
};
const CONFIG = {
  displaylogo: false, responsive: true, displayModeBar: window.innerWidth < 640 ? false : "hover",
  modeBarButtons: [["toImage", "zoom2d", "pan2d", "zoomIn2d", "zoomOut2d", "resetScale2d"]],
};
const OVER_TIME = ["chart-requests", "chart-bytes", "chart-latency", "chart-split", "chart-errors"];

// The library reads some markup in labels: names stay as they are.
function label(text) {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

function shortLabel(text, most = 28) {
  return label(text.length > most ? `${text.slice(0, most - 1)}\u2026` : text);
}

function style(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function axis(more = {}) {
  return { gridcolor: style("--grid"), linecolor: style("--line"), zeroline: false, automargin: true, ...more };
}

function layout(more = {}) {
  return {
    paper_bgcolor: style("--card"), plot_bgcolor: style("--card"),
    font: { color: style("--text"), size: 12, family: getComputedStyle(document.body).fontFamily },
    margin: { l: 55, r: 12, t: 30, b: 32 }, barmode: "stack", bargap: 0,
    hoverlabel: { bgcolor: style("--back"), bordercolor: style("--line"), font: { color: style("--text") }, namelength: 40 },
    legend: { orientation: "h", traceorder: "normal", y: 1.02, yanchor: "bottom", x: 0, font: { size: 11 } },
    xaxis: axis({ type: "date", ...rangeOfTimes() }), yaxis: axis(), showlegend: true, ...more,
  };
}

let zoom = null;  // [from, to] of all charts over time

function rangeOfTimes() {
  if (zoom) return { range: zoom };
  return { range: [TIMES[0], TIMES[0] + Math.max(BUCKETS, 1) * SERIES.width_ms] };
}

function draw(id, traces, format, none) {
  const place = byId(id);
  if (!traces.length) {
    if (place.data) Plotly.purge(place);
    place.classList.add("none");
    place.style.height = "auto";
    place.replaceChildren(empty(none));
    return;
  }
  if (place.classList.contains("none")) {
    place.classList.remove("none");
    place.style.height = "";
    place.replaceChildren();
  }
  Plotly.react(place, traces, format, CONFIG);
  if (OVER_TIME.includes(id) && !place.dataset.follows) {
    place.dataset.follows = "yes";
    place.on("plotly_relayout", (change) => follow(id, change));
  }
}

let following = false;

// Give all charts over time the range of the one that the user zoomed.
function follow(id, change) {
  if (following) return;
  const from = change["xaxis.range[0]"], to = change["xaxis.range[1]"];
  if (from === undefined && !change["xaxis.autorange"]) return;
  zoom = from === undefined ? null : [from, to];
  following = true;
  const others = OVER_TIME.filter((one) => byId(one).data && (one !== id || !zoom));
  Promise.all(others.map((one) => Plotly.relayout(byId(one), { "xaxis.range": rangeOfTimes().range.slice() })))
    .finally(() => { following = false; });
}

const SECONDS = SERIES.width_ms / 1000;
const WIDTH_TEXT = duration(SERIES.width_ms * 1e6);

function bars(found, nameOf, colourOf, unit) {
  const middle = TIMES.map((ms) => ms + SERIES.width_ms / 2);
  return found.map(([key, values]) => ({
    type: "bar", name: label(nameOf(key)), x: middle, width: SERIES.width_ms,
    y: values.map((one) => one / SECONDS), marker: { color: colourOf(key), line: { width: 0 } },
    customdata: values.map(unit), hovertemplate: `%{customdata} in ${WIDTH_TEXT}`,
  }));
}

const apiColours = new Map(
  largest(sumsByApi(SERIES.cells, (cell) => cell[REQUESTS] + cell[RESPONSES]), LISTED_APIS)
    .filter(([api]) => api !== OTHERS).map(([api], at) => [api, COLOURS[at]]));

function colourOfApi(api) {
  return apiColours.get(api) ?? style("--others");
}

// APIs without a colour of their own are drawn together.
function byApi(cells, value) {
  const alone = wanted("api") !== null;
  return largest(sumsByApi(cells, value), alone ? 1 : LISTED_APIS);
}

const nameOfApi = (api) => api === OTHERS ? "others" : SERIES.apis[api];
const NO_TRAFFIC = "No exchanges with a time pass the filters.";

function drawTraffic(cells) {
  const title = (text) => layout({ yaxis: axis({ title: { text }, rangemode: "tozero", tickformat: "~s" }) });
  draw("chart-requests", bars(byApi(cells, (cell) => cell[REQUESTS]), nameOfApi, colourOfApi,
    (one) => `${count(one)} requests`), title("requests/s"), NO_TRAFFIC);
  draw("chart-bytes", bars(byApi(cells, (cell) => cell[REQUEST_BYTES] + cell[RESPONSE_BYTES]),
    nameOfApi, colourOfApi, bytes), title("bytes/s"), NO_TRAFFIC);
}

function drawErrors(cells) {
  const found = largest(sumsByCode(cells), LISTED_APIS);
  const colours = new Map(found.map(([code], at) => [code, COLOURS[(at + 3) % COLOURS.length]]));
  draw("chart-errors", bars(found, (code) => code === OTHERS ? "others" : SERIES.codes[code],
    (code) => code === OTHERS ? style("--others") : colours.get(code), (one) => `${count(one)} responses`),
  layout({ yaxis: axis({ title: { text: "responses/s" }, rangemode: "tozero", tickformat: "~s" }) }),
  "No responses with errors pass the filters.");
}

function drawLatency(cells) {
  const counts = latencyCounts(cells);
  const classes = [...counts.keys()].filter((one) => one > 0);
  if (!classes.length) return draw("chart-latency", [], {}, "No responses with a latency pass the filters.");
  const low = Math.min(...classes), high = Math.max(...classes);
  const steps = Array.from({ length: high - low + 1 }, (_, at) => low + at);
  const numbers = steps.map((one) => counts.get(one) ?? new Array(BUCKETS).fill(0));
  const heat = {
    type: "heatmap", name: "", showscale: false, colorscale: SCALES[theme()], zmin: 0,
    x: [...TIMES, TIMES[0] + BUCKETS * SERIES.width_ms],
    y: [...steps.map((one) => latencyMs(one - 1)), latencyMs(high)],
    z: numbers.map((row) => row.map((one) => Math.log10(1 + one))), customdata: numbers,
    hovertemplate: `%{customdata} responses in ${WIDTH_TEXT} near %{y:.3~g} ms<extra></extra>`,
  };
  const line = (name, portion, color, dash) => ({
    type: "scatter", mode: "lines+markers", name, x: TIMES.map((ms) => ms + SERIES.width_ms / 2),
    y: percentiles(counts, portion), line: { color, width: 1.5, dash }, marker: { size: 4 },
    hovertemplate: "%{y:.3~g} ms",
  });
  const edges = [Math.log10(latencyMs(low - 2)), Math.log10(latencyMs(high + 1))];
  draw("chart-latency", [heat, line("p50", 0.5, COLOURS[2], "solid"), line("p95", 0.95, COLOURS[7], "solid"),
    line("p99", 0.99, COLOURS[1], "solid")], layout({
    yaxis: axis({ type: "log", title: { text: "ms" }, range: edges, dtick: 1, tickformat: "~g" }),
  }), "");
}

// -- the parts of latencies

const LOAD = DATA.load;
const PARTS = [["network", 4, 5], ["waiting on purpose", 5, 8], ["broker", 6, 0]];  // name, index in a cell, colour

function drawSplit() {
  const api = LOAD.apis.indexOf(chosenName("api")), client = LOAD.clients.indexOf(chosenName("client"));
  const cells = LOAD.cells.filter((cell) =>
    (wanted("api") === null || cell[1] === api) && (wanted("client") === null || cell[2] === client));
  const buckets = cells.reduce((most, [at]) => Math.max(most, at + 1), 0);
  const responses = new Array(buckets).fill(0);
  for (const cell of cells) responses[cell[0]] += cell[3];
  const middle = responses.map((_, at) => LOAD.first_ms + (at + 0.5) * LOAD.width_ms);
  const traces = PARTS.map(([name, part, colour]) => {
    const sum = new Array(buckets).fill(0);
    for (const cell of cells) sum[cell[0]] += cell[part];
    return {
      type: "bar", name, x: middle, width: LOAD.width_ms,
      y: sum.map((ns, at) => responses[at] ? ns / responses[at] / 1e6 : null),
      marker: { color: COLOURS[colour], line: { width: 0 } }, hovertemplate: "%{y:.3~g} ms",
    };
  });
  draw("chart-split", cells.length ? traces : [], layout({
    yaxis: axis({ title: { text: "ms" }, rangemode: "tozero", tickformat: "~s" }),
  }), "No responses with a latency pass the filters.");
}

// -- percentiles of the whole capture

const LISTED_NAMES = 15;

function drawPercentiles() {
  const kind = byId("by").value;
  const found = DATA.distributions[kind];
  const named = found.rows.filter((row) => row.p50_ns !== null && row.p50_ns > 0).slice(0, LISTED_NAMES).reverse();
  const rows = named.map((row, at) => `${at}`);
  const points = (key, name, color) => ({
    type: "scatter", mode: "markers", name, y: rows, x: named.map((row) => row[key] / 1e6),
    marker: { color, size: 9 }, text: named.map((row) => shortLabel(row.name ?? "others", 60)),
    hovertemplate: `%{text}: ${name} %{x:.3~g} ms<extra></extra>`,
  });
  byId("chart-percentiles").style.height = `${Math.max(150, 90 + 22 * named.length)}px`;
  draw("chart-percentiles", named.length ? [points("p50_ns", "p50", COLOURS[2]), points("p95_ns", "p95", COLOURS[7]),
    points("p99_ns", "p99", COLOURS[1]), points("max_ns", "maximum", COLOURS[3])] : [], layout({
    height: Math.max(150, 90 + 22 * named.length), hovermode: "closest",
    xaxis: axis({ type: "log", ticksuffix: " ms", dtick: 1, tickformat: "~g" }),
    yaxis: axis({
      type: "category", tickmode: "array", tickvals: rows,
      ticktext: named.map((row) => shortLabel(row.name ?? "others", narrow() ? 14 : 34)),
    }),
  }), "No latencies.");
  table("table-percentiles", [
    { title: kind === "api" ? "API" : kind, value: (row) => row.name ?? "others", wide: true },
    countColumn("exchanges", "exchanges"), bytesColumn("bytes", "bytes"),
    { title: "errors", number: true, value: (row) => row.errors, text: (row) => row.errors ? `${count(row.errors)} (${share(row.errors, row.exchanges)})` : "" },
    durationColumn("p50", "p50_ns"), durationColumn("p95", "p95_ns"), durationColumn("p99", "p99_ns"),
    durationColumn("maximum", "max_ns"),
  ], found.rows, { noun: "names", left_out: found.left_out, none: "No exchanges." });
}

function narrow() {
  return window.innerWidth < 640;
}
