// Elements and tables. Text goes into textContent alone.

function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) made[name] = value;
  made.append(...children);
  return made;
}

function byId(id) {
  return document.getElementById(id);
}

function empty(text) {
  return element("p", { className: "empty", textContent: text });
}

const SHOWN_ROWS = 15;
const tableStates = {};

// Draw a sortable table. columns: {title, value, text, number, wide, wider, short, mark, node}; noun: what rows are;
// sentences: whether narrow screens show a row as lines, one for each cell.
function table(id, columns, rows, { noun = "rows", left_out = 0, none = "None.", sentences = false } = {}) {
  const state = tableStates[id] ??= { column: null, down: true, all: false, search: "" };
  const redraw = () => table(id, columns, rows, { noun, left_out, none, sentences });
  const place = byId(id);
  if (!rows.length) return place.replaceChildren(empty(none));
  const textOf = (column, row) => column.text ? column.text(row) : String(column.value(row) ?? "");
  const used = columns.filter((column) => rows.some((row) => textOf(column, row) !== ""));
  const wantedText = state.search.toLowerCase();
  let found = rows.filter((row) =>
    !wantedText || used.some((one) => textOf(one, row).toLowerCase().includes(wantedText)));
  const column = used.find((one) => one.title === state.column);
  if (column) {
    const order = (one, two) => {
      const [left, right] = [column.value(one), column.value(two)];
      if (left === null || left === undefined || right === null || right === undefined) {
        return (left === null || left === undefined) - (right === null || right === undefined);
      }
      const by = typeof left === "number" ? left - right : String(left).localeCompare(String(right));
      return state.down ? -by : by;
    };
    found = [...found].sort(order);
  }
  const shown = state.all ? found : found.slice(0, SHOWN_ROWS);
  const head = element("tr", {}, ...used.map((column) => {
    const mark = state.column === column.title ? (state.down ? " \u2193" : " \u2191") : "";
    return element("th", {
      textContent: column.title + mark, className: column.number ? "number" : "", scope: "col",
      onclick: () => {
        state.down = state.column === column.title ? !state.down : Boolean(column.number);
        state.column = column.title;
        redraw();
      },
    });
  }));
  const body = shown.map((row) => element("tr", {}, ...used.map((column) => {
    const cell = element("td", {
      className: [column.number ? "number" : "", column.wide ? "wide" : "", column.wider ? "wider" : "", column.short ? "short" : "",
        column.mark ? column.mark(row) : ""].join(" ").trim(),
    });
    cell.dataset.title = column.title;
    cell.append(column.node ? column.node(row) : textOf(column, row));
    return cell;
  })));
  const parts = [];
  if (rows.length > SHOWN_ROWS) {
    const search = element("input", { type: "search", placeholder: "Search", value: state.search });
    search.setAttribute("aria-label", `Search ${noun}`);
    search.oninput = () => {
      state.search = search.value;
      redraw();
      const again = place.querySelector("input");
      if (again) { again.focus(); again.setSelectionRange(again.value.length, again.value.length); }
    };
    const more = element("button", {
      type: "button", textContent: state.all ? "Show fewer" : `Show all ${count(found.length)}`,
      onclick: () => { state.all = !state.all; redraw(); },
    });
    parts.push(element("div", { className: "tools" }, search,
      ...(found.length > SHOWN_ROWS ? [more] : [])));
  }
  parts.push(element("div", { className: "scroll" },
    element("table", { className: sentences ? "sentences" : "" }, element("thead", {}, head), element("tbody", {}, ...body))));
  if (left_out) parts.push(empty(`... and ${count(left_out)} more ${noun}, which this page leaves out.`));
  place.replaceChildren(...parts);
}

const plainColumn = (title, key, more = {}) => ({ title, value: (row) => row[key], ...more });
const countColumn = (title, key) => ({
  title, number: true, value: (row) => row[key], text: (row) => row[key] ? count(row[key]) : "",
});
const bytesColumn = (title, key) => ({
  title, number: true, value: (row) => row[key], text: (row) => row[key] ? bytes(row[key]) : "",
});
const durationColumn = (title, key) => ({
  title, number: true, value: (row) => row[key], text: (row) => duration(row[key]),
});
// The first entries of a list; the others are in the tooltip.
const listColumn = (title, key) => ({
  title, value: (row) => row[key].join(", "), short: true, node: (row) => element("span", {
    textContent: row[key].slice(0, 2).join(", ") + (row[key].length > 2 ? `, +${row[key].length - 2}` : ""),
    title: row[key].join("\n"),
  }),
});
