// A picture of who produces to and who consumes from which topics, as SVG.

const SVG = "http://www.w3.org/2000/svg";
const ROW = 40;           // pixels from one node to the next
const WIDEST = { wide: 16, narrow: 6 };  // pixels of the line with the most bytes
const PIXELS_PER_CHARACTER = 7;
const LINES = { produced: 0, fetched: 2, errors: 3 };  // colours

function svgElement(tag, attributes = {}, text = null) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== null) made.textContent = text;
  return made;
}

// Shorten a text to so many pixels.
function fitting(text, pixels) {
  const most = Math.max(4, Math.floor(pixels / PIXELS_PER_CHARACTER));
  return text.length > most ? `${text.slice(0, most - 1)}\u2026` : text;
}

// The nodes of a column, with the others at the end if there are links to them.
function nodesOf(listed, used) {
  const nodes = listed.map((node, number) => ({ number, groups: [], ...node }));
  return used.has(OTHERS) ? [...nodes, { number: OTHERS, name: "others", groups: [] }] : nodes;
}

function linkTitle(link, client, topic) {
  const way = link.produced ? `${client} produces to ${topic}` : `${client} consumes from ${topic}`;
  return `${way}: ${bytes(link.bytes)} in ${several(link.exchanges, "exchange")}`
    + (link.errors ? `, ${several(link.errors, "error")}` : "");
}

function drawLinks(links, nameOfClient, nameOfTopic) {
  const [, client, topic] = FILTERS.map(chosenName);
  table("table-topology", [
    { title: "client", value: nameOfClient, wide: true }, { title: "", value: (row) => row.produced ? "produces to" : "consumes from", short: true },
    { title: "topic", value: nameOfTopic, wide: true }, bytesColumn("bytes", "bytes"), countColumn("exchanges", "exchanges"),
    { title: "errors", number: true, value: (row) => row.errors, text: (row) => row.errors ? count(row.errors) : "", mark: () => "bad" },
  ], links.filter((one) => (client === null || client === nameOfClient(one)) && (topic === null || topic === nameOfTopic(one))),
  { noun: "links" });
}

function drawTopology() {
  const place = byId("picture-topology");
  const links = DATA.topology.links;
  if (!links.length) return place.replaceChildren(empty("No records were produced or fetched."));
  const width = Math.max(320, place.clientWidth), label = width * 0.24;
  const columns = [
    { kind: "client", side: "end", at: label, nodes: nodesOf(DATA.topology.producers, new Set(links.filter((one) => one.produced).map((one) => one.client))) },
    { kind: "topic", side: "middle", at: width / 2, nodes: nodesOf(DATA.topology.topics, new Set(links.map((one) => one.topic))) },
    { kind: "client", side: "start", at: width - label, nodes: nodesOf(DATA.topology.consumers, new Set(links.filter((one) => !one.produced).map((one) => one.client))) },
  ];
  const rows = Math.max(...columns.map((column) => column.nodes.length));
  const height = 34 + rows * ROW;
  const picture = svgElement("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img", "aria-label": "Producers, topics and consumers" });
  const heights = columns.map((column) => new Map(column.nodes.map((node, at) =>
    [node.number, 34 + (rows - column.nodes.length) * ROW / 2 + (at + 0.5) * ROW])));
  const box = Math.min(width * (narrow() ? 0.2 : 0.26), 260), widest = narrow() ? WIDEST.narrow : WIDEST.wide;
  const most = Math.max(1, ...links.map((one) => one.bytes));
  const [api, client, topic] = FILTERS.map(chosenName);
  const names = (column, number) => column.nodes.find((node) => node.number === number).name;
  const errorsLast = (one, two) => Boolean(one.errors) - Boolean(two.errors) || two.bytes - one.bytes;
  for (const link of [...links].sort(errorsLast)) {
    const column = link.produced ? 0 : 2;
    const who = names(columns[column], link.client), what = names(columns[1], link.topic);
    const from = columns[column].at + (link.produced ? 8 : -8), to = width / 2 + (link.produced ? -box / 2 : box / 2);
    const y = heights[column].get(link.client), end = heights[1].get(link.topic), bend = (from + to) / 2;
    const colour = link.errors ? LINES.errors : link.produced ? LINES.produced : LINES.fetched;
    const unlike = (client !== null && client !== who) || (topic !== null && topic !== what)
      || (api !== null && (api === "Produce") !== link.produced);
    const group = svgElement("g", { class: unlike ? "unlike" : "" });
    const path = svgElement("path", {
      d: `M ${from} ${y} C ${bend} ${y}, ${bend} ${end}, ${to} ${end}`, stroke: COLOURS[colour],
      "stroke-width": Math.max(1.5, widest * Math.sqrt(link.bytes / most)).toFixed(1),
    });
    path.append(svgElement("title", {}, linkTitle(link, who, what)));
    group.append(path);
    picture.append(group);
  }
  const titles = [["producers", label, "end"], ["topics", width / 2, "middle"], ["consumers", width - label, "start"]];
  for (const [text, x, anchor] of titles) picture.append(svgElement("text", { x, y: 16, "text-anchor": anchor, class: "dim" }, text));
  columns.forEach((column, index) => {
    for (const node of column.nodes) {
      const y = heights[index].get(node.number), room = column.kind === "topic" ? box - 12 : label;
      if (column.kind === "topic") picture.append(svgElement("rect", { x: width / 2 - box / 2, y: y - 13, width: box, height: 26, rx: 5 }));
      const text = svgElement("text", { x: column.at, y: y + (node.groups.length ? -2 : 4), "text-anchor": column.side }, fitting(node.name, room));
      text.append(svgElement("title", {}, node.name));
      picture.append(text);
      if (node.groups.length) {
        picture.append(svgElement("text", { x: column.at, y: y + 13, "text-anchor": column.side, class: "dim" },
          fitting(`group ${node.groups.join(", ")}`, room)));
      }
    }
  });
  place.replaceChildren(picture);
  drawLinks(links, (link) => names(columns[link.produced ? 0 : 2], link.client), (link) => names(columns[1], link.topic));
}
