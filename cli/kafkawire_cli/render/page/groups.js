// A consumer group: who held which partitions when, rebalances, lag.

const REBALANCES = "\u0000rebalances";  // the key of their row, which no member has
const MOST_ROWS = 60;

function drawGroups() {
  const groups = DATA.groups.rows;
  const chooser = byId("group");
  const group = groups[Number(chooser.value)];
  if (!group) {
    draw("chart-group", [], {}, "No consumer groups in these captures.");
    drawLag(group);
    return;
  }
  byId("group-facts").textContent = factsOf(group);
  drawGantt(group, byId("rows").value);
  drawLag(group);
  table("table-rebalances", [
    { title: "start", value: (row) => row.started_ms, text: (row) => timeOfMs(row.started_ms), short: true },
    { title: "consumption stopped", value: (row) => row.stops ? row.from_ms : -1,
      text: (row) => row.stops ? timeOfMs(row.from_ms) : row.until_ms === null ? "" : "no: members continued", short: true },
    { title: "end", value: (row) => row.until_ms ?? Infinity, text: (row) => row.until_ms === null ? "not ended" : timeOfMs(row.until_ms), short: true },
    durationColumn("duration", "duration_ns"),
    { title: "unavailable", number: true, value: (row) => row.stopped_ns ?? -1, text: (row) => row.stops ? duration(row.stopped_ns) : "" },
    plainColumn("cause", "reason", { wide: true }), plainColumn("client", "client"),
    countColumn("members", "members"),
    { title: "generation", number: true, value: (row) => row.generation },
  ], group.rebalances, { noun: "rebalances", left_out: group.left_out.rebalances, none: "No rebalances.", sentences: true });
  table("table-absences", [
    { title: "absence", value: (row) => row.from_ms, text: (row) => timeOfMs(row.from_ms), short: true },
    { title: "until", value: (row) => row.until_ms, text: (row) => timeOfMs(row.until_ms), short: true },
    durationColumn("duration", "duration_ns"), plainColumn("what", "what", { wide: true }), plainColumn("client", "client"),
  ], group.absences, { noun: "absences", left_out: group.left_out.absences, none: "No silent or absent members.", sentences: true });
}

// The lags of the partitions of a group at its commits.
function drawLag(group) {
  const found = group ? DATA.lag[group.group] : undefined;
  const rows = found ? found.rows : [];
  const traces = rows.map((row, at) => ({
    type: "scatter", mode: "lines+markers", name: shortLabel(row.partition), x: row.points.map(([ms]) => ms),
    y: row.points.map(([, lag]) => lag), customdata: row.points.map(([, , offset]) => offset),
    line: { color: COLOURS[at % COLOURS.length], width: 1.5, shape: "hv" }, marker: { size: 4 },
    hovertemplate: "lag %{y:,} at offset %{customdata:,}",
  }));
  const most = Math.max(0, ...rows.flatMap((row) => row.points.map(([, lag]) => lag)));
  draw("chart-lag", traces, layout({
    xaxis: axis({ type: "date", range: group ? rangeOfGroup(group) : rangeOfTimes().range }),
    yaxis: axis({ title: { text: "lag by partition" }, rangemode: "tozero", ...(most < 5 ? { dtick: 1, range: [-0.2, 5] } : { tickformat: "~s" }) }),
  }), "No lags of this group: neither its commits nor the ends of partitions are known.");
}

function factsOf(group) {
  const facts = [
    `${group.protocol}${group.assignors.length ? ` (${group.assignors.join(", ")})` : ""}`,
    several(group.members.length, "member"), several(group.rebalances.length, "rebalance"),
    group.unavailable_ns ? `unavailable for ${duration(group.unavailable_ns)}` : "",
    several(group.commits, "commit"),
    ...Object.entries(group.errors).map(([code, number]) => `${code} ${count(number)}`),
    ...Object.entries(group.left_out).filter(([, number]) => number).map(([what, number]) => `${count(number)} ${what} left out`),
  ];
  if (DATA.groups.left_out) facts.push(`${count(DATA.groups.left_out)} more groups left out`);
  return facts.filter(Boolean).join(" \u00b7 ");
}

// The bars of assignments: [row key, assignment].
function ganttBars(group, rows) {
  if (rows === "members") return group.assignments.map((one) => [`m${one.member}`, one]);
  return group.assignments.flatMap((one) => one.partitions.map(([topic, number]) => [`${group.topics[topic]}-${number}`, one]));
}

// The time that a group's chart shows: of the group, or what the user zoomed to.
function rangeOfGroup(group) {
  if (zoom) return zoom;
  const times = [...group.assignments, ...group.rebalances].flatMap((one) => [one.from_ms, one.until_ms ?? one.from_ms]);
  times.push(...group.lags.map(([ms]) => ms));
  if (!times.length) return rangeOfTimes().range;
  const from = Math.min(...times), to = Math.max(...times), space = Math.max((to - from) / 50, 1);
  return [from - space, to + space];
}

function drawGantt(group, rows) {
  const found = ganttBars(group, rows);
  const keys = [...new Set(found.map(([key]) => key))].sort((one, two) =>
    one.localeCompare(two, "en", { numeric: true })).slice(0, MOST_ROWS);
  const textOf = (key) => rows === "members" ? group.members[Number(key.slice(1))].client : key;
  const text = new Map(keys.map((key) => [key, shortLabel(textOf(key), narrow() ? 12 : 30)]));
  const members = [...new Set(found.map(([, one]) => one.member))].sort((one, two) => one - two);
  const traces = members.map((member) => {
    const own = found.filter(([key, one]) => one.member === member && text.has(key));
    const who = group.members[member];
    return {
      type: "bar", orientation: "h", name: shortLabel(who.client), legendgroup: String(member),
      y: own.map(([key]) => key), base: own.map(([, one]) => one.from_ms),
      x: own.map(([, one]) => Math.max(one.until_ms - one.from_ms, 0.001)),
      marker: { color: COLOURS[member % COLOURS.length], line: { color: style("--card"), width: 1 } },
      customdata: own.map(([, one]) => [label(one.text), duration((one.until_ms - one.from_ms) * 1e6), shortLabel(who.member, 60)]),
      hovertemplate: "%{customdata[0]}<br>for %{customdata[1]}<br>%{customdata[2]}<extra></extra>",
      showlegend: rows !== "members" && members.length <= 20,
    };
  });
  const end = SERIES.first_ms + BUCKETS * SERIES.width_ms;
  if (group.rebalances.length) traces.push(rebalanceBars(group, end));
  const withLag = group.lags.length > 0;
  if (withLag) traces.push(lagLine(group));
  const listed = [...keys, ...(group.rebalances.length ? [REBALANCES] : [])].reverse();
  const pixels = 26 * Math.max(listed.length, 1);
  const lagPixels = withLag ? 130 : 0;
  const height = pixels + lagPixels + 110;
  byId("chart-group").style.height = `${height}px`;
  const split = lagPixels / (pixels + lagPixels);
  draw("chart-group", traces, layout({
    height, barmode: "overlay", bargap: 0.25, hovermode: "closest",
    xaxis: axis({ type: "date", anchor: withLag ? "y2" : "y", range: rangeOfGroup(group) }),
    yaxis: axis({
      type: "category", domain: [withLag ? split + 0.03 : 0, 1], categoryorder: "array", categoryarray: listed,
      range: [-0.5, listed.length - 0.5],
      tickmode: "array", tickvals: listed, ticktext: listed.map((key) => key === REBALANCES ? "rebalances" : text.get(key)),
    }),
    yaxis2: axis({ domain: [0, Math.max(split - 0.04, 0.01)], rangemode: "tozero", title: { text: withLag ? "lag at commit" : "" }, visible: withLag, nticks: 4,
      ...(Math.max(0, ...group.lags.map(([, lag]) => lag)) < 5 ? { dtick: 1, range: [-0.2, 5] } : { tickformat: "~s" }) }),
    shapes: [...group.rebalances.filter((one) => one.stops), ...group.absences.filter((one) => one.all)].map((one) => ({
      type: "rect", xref: "x", yref: "paper", y0: withLag ? split + 0.03 : 0, y1: 1, layer: "below", line: { width: 0 },
      x0: one.from_ms, x1: one.until_ms ?? end, fillcolor: COLOURS[3], opacity: 0.12,
    })),
  }), "Only commits of this group are in the captures.");
}

function rebalanceBars(group, end) {
  const found = group.rebalances;
  return {
    type: "bar", orientation: "h", name: "rebalances", showlegend: false, y: found.map(() => REBALANCES),
    base: found.map((one) => one.from_ms), x: found.map((one) => Math.max((one.until_ms ?? end) - one.from_ms, 0.001)),
    marker: { color: COLOURS[3], line: { color: COLOURS[3], width: 1.5 } },
    customdata: found.map((one) => [label(one.reason), label(one.client), duration(one.duration_ns),
      one.stops ? `unavailable for ${duration(one.stopped_ns)}` : one.until_ms === null ? "not ended" : "members continued"]),
    hovertemplate: "%{customdata[0]}<br>%{customdata[1]}<br>%{customdata[2]}: %{customdata[3]}<extra></extra>",
  };
}

function lagLine(group) {
  return {
    type: "scatter", mode: "lines+markers", name: "lag", showlegend: false, yaxis: "y2",
    x: group.lags.map(([ms]) => ms), y: group.lags.map(([, lag]) => lag),
    line: { color: COLOURS[0], width: 1.5, shape: "hv" }, marker: { size: 4 }, hovertemplate: "lag %{y:,}<extra></extra>",
  };
}
