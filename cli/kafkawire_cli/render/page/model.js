"use strict";
// The data, the filters, and sums over the cells that pass them. Names are text everywhere: nothing
// here or below makes markup of them.

const DATA = JSON.parse(document.getElementById("data").textContent);
const SERIES = DATA.series;
const FILTERS = ["api", "client", "topic"];
const ANY = "";
const OTHERS = -1;
const LISTED_APIS = 9;

// Of a cell, as data.py writes it.
const BUCKET = 0, API = 1, CLIENT = 2, TOPICS = 3, REQUESTS = 4, RESPONSES = 5, ERRORS = 6;
const REQUEST_BYTES = 7, RESPONSE_BYTES = 8, CODES = 9, LATENCIES = 10;

const chosen = { api: ANY, client: ANY, topic: ANY };
const NAMES = { api: SERIES.apis, client: SERIES.clients, topic: SERIES.topics };

const BUCKETS = SERIES.cells.reduce((most, cell) => Math.max(most, cell[BUCKET] + 1), 0);
const TIMES = Array.from({ length: BUCKETS }, (_, at) => SERIES.first_ms + at * SERIES.width_ms);

// The number that a chosen name has in cells; null for any.
function wanted(kind) {
  return chosen[kind] === ANY ? null : Number(chosen[kind]);
}

function filteredCells() {
  const [api, client, topic] = FILTERS.map(wanted);
  return SERIES.cells.filter((cell) =>
    (api === null || cell[API] === api) &&
    (client === null || cell[CLIENT] === client) &&
    (topic === null || cell[TOPICS].includes(topic)));
}

// The chosen name of a kind, for lists whose entries have names; null for any.
function chosenName(kind) {
  const number = wanted(kind);
  return number === null || number === OTHERS ? null : NAMES[kind][number];
}

// Sums of a value of the cells by key and bucket: Map of key -> array over buckets.
function sums(cells, keyOf, valueOf) {
  const found = new Map();
  for (const cell of cells) {
    for (const [key, value] of valueOf(cell, keyOf(cell))) {
      if (!found.has(key)) found.set(key, new Array(BUCKETS).fill(0));
      found.get(key)[cell[BUCKET]] += value;
    }
  }
  return found;
}

function sumsByApi(cells, value) {
  return sums(cells, (cell) => cell[API], (cell, api) => [[api, value(cell)]]);
}

function sumsByCode(cells) {
  return sums(cells, () => null, (cell) => pairs(cell[CODES]));
}

function pairs(flat) {
  const found = [];
  for (let at = 0; at < flat.length; at += 2) found.push([flat[at], flat[at + 1]]);
  return found;
}

// The entries with the largest totals, and the sum of the others under OTHERS.
function largest(found, most) {
  const total = (values) => values.reduce((sum, one) => sum + one, 0);
  const ordered = [...found].filter(([, values]) => total(values) > 0)
    .sort((one, two) => total(two[1]) - total(one[1]));
  const shown = ordered.slice(0, most);
  const rest = ordered.slice(most);
  if (rest.length) {
    shown.push([OTHERS, rest.reduce((sum, [, values]) => sum.map((one, at) => one + values[at]),
      new Array(BUCKETS).fill(0))]);
  }
  return shown;
}

// Counts by latency class and bucket: Map of class -> array over buckets.
function latencyCounts(cells) {
  return sums(cells, () => null, (cell) => pairs(cell[LATENCIES]));
}

// The upper end of a latency class, in milliseconds.
function latencyMs(number) {
  return 2 ** (number / SERIES.per_doubling) / 1e6;
}

// The percentile of each bucket, in milliseconds; null where there are no latencies.
function percentiles(counts, share) {
  const classes = [...counts.keys()].sort((one, two) => one - two);
  return TIMES.map((_, at) => {
    const total = classes.reduce((sum, one) => sum + counts.get(one)[at], 0);
    if (!total) return null;
    let passed = 0;
    for (const one of classes) {
      passed += counts.get(one)[at];
      if (passed >= share * total) return latencyMs(one - 0.5);
    }
    return null;
  });
}

// -- text of numbers

function count(number) {
  return number.toLocaleString("en-US");
}

function several(number, noun) {
  return `${count(number)} ${noun}${number === 1 ? "" : "s"}`;
}

function scaled(amount, units, digits = 3) {
  let size = Math.abs(amount), at = 0;
  while (size >= 1000 && at + 1 < units.length) { size /= 1000; at += 1; }
  const text = Number(size.toPrecision(digits)).toLocaleString("en-US");
  return `${amount < 0 ? "-" : ""}${text} ${units[at]}`;
}

function bytes(size) {
  return scaled(size, ["B", "kB", "MB", "GB", "TB"]);
}

function duration(ns) {
  if (ns === null || ns === undefined) return "";
  return Math.abs(ns) < 120e9 ? scaled(ns, ["ns", "\u00b5s", "ms", "s"]) : `${(ns / 60e9).toFixed(1)} min`;
}

function time(text) {
  return text ? text.slice(0, 10) + " " + text.slice(11, 26) : "";
}

function timeOfMs(ms) {
  return time(new Date(ms).toISOString().replace("Z", "000"));
}

function share(part, whole) {
  return whole ? `${Number((100 * part / whole).toPrecision(3))} %` : "";
}
