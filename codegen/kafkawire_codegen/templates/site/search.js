"use strict";
// Search over messages, fields, error codes and KIPs. The index is loaded when the search is first used.

(() => {
  const MOST = 30;
  const base = document.documentElement.dataset.root;
  const form = document.querySelector(".search");
  const input = document.getElementById("search-input");
  const list = document.getElementById("search-results");
  let entries = null;
  let loading = null;
  let selected = -1;

  const folded = (text) => text.toLowerCase().replace(/[^a-z0-9-]+/g, "");
  const snake = (name) => name
    .replace(/([A-Z]+)([A-Z][a-z])/g, "$1_$2").replace(/([a-z0-9])([A-Z])/g, "$1_$2").toLowerCase();

  // entry: what is shown, where it leads, the name that is searched (`api`: without its direction), the words around it,
  // the rank of its kind
  function index(data) {
    const made = [];
    for (const [name, key, type, fields] of data.messages) {
      const page = `messages/${name}.html`;
      const kind = type.replace("-", " ") + (key === null ? "" : ` ${key}`);
      const number = type === "request" && key !== null ? String(key) : "";
      made.push({ text: name, note: kind, link: page, name: folded(name), number, api: folded(name.replace(/(Request|Response)$/, "")), around: "", rank: type === "request" ? 0 : 1 });
      const path = [];
      for (const field of fields ? fields.split(" ") : []) {
        const cut = field.indexOf(":");
        path.length = Number(field.slice(0, cut));
        path.push(field.slice(cut + 1));
        made.push({
          text: path.join("."), note: name, link: `${page}#${path.map(snake).join(".")}`,
          name: folded(path[path.length - 1]), number: "", around: folded(name + path.join("")), rank: type === "request" || type === "response" ? 3 : 4,
        });
      }
    }
    for (const [code, name] of data.errors) {
      made.push({ text: name, note: `error code ${code}`, link: `errors.html#error-${code}`, name: folded(name), number: String(code), around: "error", rank: 2 });
    }
    for (const kip of data.kips) {
      made.push({ text: `KIP-${kip}`, note: "Kafka improvement proposal", link: `kips.html#kip-${kip}`, name: `kip-${kip}`, number: "", around: "", rank: 2 });
    }
    return made;
  }

  function load() {
    loading ??= new Promise((done, failed) => {
      const script = document.createElement("script");
      script.src = `${base}assets/search-data.js`;
      script.onload = () => { entries = index(window.searchData); done(); };
      script.onerror = failed;
      document.head.append(script);
    });
    return loading;
  }

  // lower is better; null: not found. Every word must be in the name or around it, one of them in the name.
  function score(entry, words) {
    let best = null;
    for (const word of words) {
      const at = entry.name.indexOf(word);
      const here = entry.number === word ? 0 : at < 0 ? null : entry.name === word || entry.api === word ? 0 : at === 0 ? 1 : 2;
      if (here === null && !entry.around.includes(word)) return null;
      if (here !== null && (best === null || here < best)) best = here;
    }
    return best === null ? null : best * 10 + entry.rank;
  }

  function find(text) {
    const words = text.split(/[\s._]+/).map(folded).filter(Boolean);
    if (!words.length) return [];
    const whole = [folded(text)];
    const found = [];
    for (const entry of entries) {
      const scores = [score(entry, whole), score(entry, words)].filter((one) => one !== null);
      if (scores.length) found.push([Math.min(...scores), entry.text.length, entry]);
    }
    found.sort((a, b) => a[0] - b[0] || a[1] - b[1] || (a[2].note < b[2].note ? -1 : 1));
    return found.slice(0, MOST).map((one) => one[2]);
  }

  function draw() {
    const text = input.value.trim();
    const found = text && entries ? find(text) : [];
    selected = found.length ? 0 : -1;
    list.replaceChildren(...found.map((entry, i) => {
      const item = document.createElement("li");
      item.id = `search-${i}`;
      item.setAttribute("role", "option");
      item.dataset.link = base + entry.link;
      item.append(entry.text);
      const note = document.createElement("span");
      note.textContent = entry.note;
      item.append(note);
      return item;
    }));
    if (text && !found.length) {
      const item = document.createElement("li");
      item.className = "nothing";
      item.textContent = "Nothing found";
      list.append(item);
    }
    list.hidden = !text;
    input.setAttribute("aria-expanded", String(Boolean(text)));
    mark();
  }

  function mark() {
    const items = list.querySelectorAll("[role=option]");
    items.forEach((item, i) => item.setAttribute("aria-selected", String(i === selected)));
    if (selected >= 0) {
      input.setAttribute("aria-activedescendant", items[selected].id);
      items[selected].scrollIntoView({ block: "nearest" });
    } else input.removeAttribute("aria-activedescendant");
  }

  function close() {
    list.hidden = true;
    input.setAttribute("aria-expanded", "false");
  }

  function go(item) {
    if (!item) return;
    close();
    location.href = item.dataset.link;
  }

  input.addEventListener("focus", load);
  input.addEventListener("input", () => load().then(draw));
  input.addEventListener("keydown", (event) => {
    const items = list.querySelectorAll("[role=option]");
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      if (!items.length || list.hidden) return;
      selected = (selected + (event.key === "ArrowDown" ? 1 : items.length - 1)) % items.length;
      mark();
    } else if (event.key === "Enter") {
      go(list.hidden ? null : items[selected]);
    } else if (event.key === "Escape") {
      close();
      input.blur();
    } else return;
    event.preventDefault();
  });
  list.addEventListener("mousedown", (event) => {
    event.preventDefault();
    go(event.target.closest("[role=option]"));
  });
  input.addEventListener("blur", close);
  form.addEventListener("submit", (event) => event.preventDefault());
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest("input, select, textarea")) return;
    event.preventDefault();
    input.focus();
    input.select();
  });
  form.hidden = false;
})();
