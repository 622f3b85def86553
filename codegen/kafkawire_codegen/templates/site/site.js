"use strict";
// Theme, and the choice of a version on the page of a message. Texts are put into the page as text, never as markup.

const root = document.documentElement;
const remembered = {
  get(key) { try { return localStorage.getItem(key); } catch { return null; } },
  set(key, value) { try { localStorage.setItem(key, value); } catch { /* a page that is opened as a file may have no storage */ } },
};

if (["dark", "light"].includes(remembered.get("theme"))) root.dataset.theme = remembered.get("theme");

function startTheme() {
  const button = document.getElementById("theme-button");
  button.hidden = false;
  button.addEventListener("click", () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    remembered.set("theme", root.dataset.theme);
  });
}

function startVersions() {
  const select = document.getElementById("version-select");
  if (!select) return;
  const columns = [...document.querySelectorAll("#field-table thead th[data-low]")];
  const rows = [...document.querySelectorAll("#field-table tbody tr")];
  const ranges = [...document.querySelectorAll("#version-table tbody tr")];
  const has = (element, version) => Number(element.dataset.low) <= version && version <= Number(element.dataset.high);

  // null: all versions
  function show(version) {
    const chosen = version === null ? -1 : columns.findIndex((column) => has(column, version));
    columns.forEach((column, i) => { column.hidden = chosen >= 0 && i !== chosen; });
    let shown = 0;
    for (const row of rows) {
      const cells = row.cells;
      for (let i = 1; i < cells.length; i++) cells[i].hidden = chosen >= 0 && i - 1 !== chosen;
      const there = chosen < 0 || !(cells[chosen + 1].matches(".absent, .removed"));
      row.hidden = !there;
      shown += there;
    }
    document.getElementById("field-table")?.classList.toggle("one", chosen >= 0);
    for (const row of ranges) row.classList.toggle("chosen", version !== null && has(row, version));
    for (const example of document.querySelectorAll(".example")) {
      example.hidden = version !== null && !has(example, version);
      if (!example.hidden && version !== null) example.open = true;
    }
    for (const link of document.querySelectorAll(".pair a")) {
      link.search = version === null ? "" : `?v=${version}`;
    }
    const note = version === null ? "" : `${shown} of ${rows.length} ${rows.length === 1 ? "field" : "fields"}`;
    document.getElementById("version-note").textContent = note;
    const range = ranges.find((row) => version !== null && has(row, version));
    select.value = range ? range.dataset.low : "";
    // the options are: all, newest, ..., oldest
    document.getElementById("version-newer").disabled = select.selectedIndex <= 1;
    document.getElementById("version-older").disabled = select.selectedIndex === select.options.length - 1;
  }

  function choose(version) {
    show(version);
    const address = new URL(location.href);
    if (version === null) address.searchParams.delete("v");
    else address.searchParams.set("v", version);
    try { history.replaceState(null, "", address); } catch { /* not allowed for files in some browsers */ }
  }

  function requestedVersion() {
    const text = new URLSearchParams(location.search).get("v");
    const version = text !== null && /^[0-9]{1,5}$/.test(text) ? Number(text) : null;
    return version !== null && ranges.some((row) => has(row, version)) ? version : null;
  }

  const step = (by) => {
    const index = Math.min(Math.max(select.selectedIndex + by, 1), select.options.length - 1);
    choose(Number(select.options[index].value));
  };
  select.addEventListener("change", () => choose(select.value === "" ? null : Number(select.value)));
  document.getElementById("version-newer").addEventListener("click", () => step(-1));
  document.getElementById("version-older").addEventListener("click", () => step(1));
  for (const column of columns) {
    column.firstElementChild.addEventListener("click", (event) => {
      event.preventDefault();
      const version = Number(column.dataset.low);
      choose(select.value === column.dataset.low ? null : version);
    });
  }
  // a link to a field that the chosen version lacks shows all versions
  addEventListener("hashchange", () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (target && target.hidden) {
      choose(null);
      target.scrollIntoView();
    }
  });
  document.getElementById("version-tools").hidden = false;
  show(requestedVersion());
  const target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (target && target.hidden) show(null);
}

document.addEventListener("DOMContentLoaded", () => {
  startTheme();
  startVersions();
  root.dataset.ready = "yes";
});
