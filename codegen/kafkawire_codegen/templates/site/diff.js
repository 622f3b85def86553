"use strict";
// The difference of two releases, as `kafkawire schema diff FROM TO` finds it.

(() => {
  const data = window.diffData;
  const from = document.getElementById("diff-from");
  const to = document.getElementById("diff-to");
  const result = document.getElementById("diff-result");

  const chosenRelease = (select) => data.releases[Number(select.value)];
  const cut = (a, b) => {
    if (!a || !b) return null;
    const low = Math.max(a[0], b[0]), high = Math.min(a[1], b[1]);
    return low <= high ? [low, high] : null;
  };
  const text = (run) => (run[0] === run[1] ? String(run[0]) : `${run[0]}-${run[1]}`);

  // the runs of `all` that are not in `other`
  function without(all, other) {
    const common = cut(all, other);
    if (!common) return [all];
    return [[all[0], common[0] - 1], [common[1] + 1, all[1]]].filter(([low, high]) => low <= high);
  }

  // name -> its versions in a release, and whether the newest is unstable
  function messagesAt(release) {
    const number = data.releases.indexOf(release);
    const found = new Map();
    for (const [name, api, isRequest, valid, headers, fields] of data.messages) {
      const versions = cut(data.ranges[api]?.[number], valid);
      if (!versions) continue;
      const unstable = data.unstable[api]?.[release];
      const latest = isRequest === 1 && Boolean(unstable) && unstable[0] <= versions[1] && versions[1] <= unstable[1];
      found.set(name, { api, versions, headers, fields, latest });
    }
    return found;
  }

  // versions as a schema writes them, the newest as open; none where there are none
  const written = (run, newest) => (!run ? "none" : run[1] >= newest ? `${run[0]}+` : text(run));

  function change(before, after) {
    const lines = [];
    const common = cut(before.versions, after.versions);
    const since = (run, side) => common && cut(cut(run, side.versions), [common[0], Infinity]);
    const shown = (run, side) => written(since(run, side), side.versions[1]);
    const headersOf = (side) => side.headers.filter((run) => since(run, side))
      .map((run) => `${shown(run, side)}: ${run[2]}`).join(", ");
    const added = without(after.versions, before.versions), removed = without(before.versions, after.versions);
    if (added.length) lines.push(`+ versions ${added.map(text).join(", ")}`);
    if (removed.length) lines.push(`- versions ${removed.map(text).join(", ")}`);
    const came = [], went = [], altered = [];
    for (const [path, type, versions, run, nullable, tagged] of after.fields) {
      const old = cut(run, before.versions), now = cut(run, after.versions);
      if (now && !old) came.push(`+ ${path}: ${type}, ${versions}`);
      if (old && !now) went.push(`- ${path}: ${type}, ${versions}`);
      if (!old || !now) continue;
      for (const [key, each] of [["versions", run], ["nullableVersions", nullable], ["taggedVersions", tagged]]) {
        const was = shown(each, before), is = shown(each, after);
        if (was !== is) altered.push(`~ ${path}: ${key} ${was} -> ${is}`);
      }
    }
    lines.push(...came, ...went);
    const yes = (latest) => (latest ? "yes" : "none");
    if (before.latest !== after.latest) lines.push(`~ latestVersionUnstable ${yes(before.latest)} -> ${yes(after.latest)}`);
    const wasHeaders = headersOf(before), isHeaders = headersOf(after);
    if (wasHeaders !== isHeaders) lines.push(`~ headerVersions ${wasHeaders || "none"} -> ${isHeaders || "none"}`);
    return [...lines, ...altered];
  }

  // released versions that are removed: all that two releases of one set of schemas can break
  function breaches(old, now) {
    const free = new Map();
    for (const { api, versions, latest } of old.values()) if (latest) free.set(api, versions[1]);
    const lines = [];
    for (const name of [...old.keys()].sort()) {
      const { api, versions } = old.get(name);
      const released = free.get(api) === versions[1] ? [versions[0], versions[1] - 1] : versions;
      if (released[0] > released[1]) continue;
      const after = now.get(name);
      if (!after) {
        lines.push(`${name}: the message is removed, with its versions ${text(released)} [message-removed]`);
        continue;
      }
      const dropped = without(released, after.versions);
      if (dropped.length) lines.push(`${name}: ${dropped.map(text).join(" and ")} is no longer valid [version-dropped]`);
    }
    return lines;
  }

  function heading(words, level) {
    const made = document.createElement(`h${level}`);
    made.textContent = words;
    return made;
  }

  function link(name) {
    const made = document.createElement("a");
    made.href = `messages/${name}.html`;
    made.textContent = name;
    return made;
  }

  const MARKS = { "+": "mark-new", "-": "mark-removed", "~": "mark-changed" };

  function bullets(lines, id, className) {
    const made = document.createElement("ul");
    made.id = id;
    made.className = className;
    for (const line of lines) {
      const item = document.createElement("li");
      if (typeof line === "string") {
        item.className = MARKS[line[0]] ?? "";
        item.textContent = line;
      } else item.append(line);
      made.append(item);
    }
    return made;
  }

  function cards(changed) {
    const made = document.createElement("div");
    made.className = "cards";
    for (const [name, lines] of changed) {
      const card = document.createElement("section");
      const title = heading("", 3);
      title.append(link(name));
      card.append(title, bullets(lines, `diff-${name}`, "mono"));
      made.append(card);
    }
    return made;
  }

  function draw() {
    const old = messagesAt(chosenRelease(from)), now = messagesAt(chosenRelease(to));
    const added = [...now.keys()].filter((name) => !old.has(name)).sort();
    const removed = [...old.keys()].filter((name) => !now.has(name)).sort();
    const changed = [...old.keys()].filter((name) => now.has(name)).sort()
      .map((name) => [name, change(old.get(name), now.get(name))]).filter(([, lines]) => lines.length);
    const broken = breaches(old, now);
    const count = (number, noun) => `${number} ${noun}`;
    const parts = [];
    if (added.length) parts.push(heading("New messages", 2), bullets(added.map(link), "diff-added", "names"));
    if (removed.length) parts.push(heading("Removed messages", 2), bullets(removed.map(link), "diff-removed", "names"));
    if (changed.length) parts.push(heading("Changed messages", 2), cards(changed));
    if (broken.length) parts.push(heading("Rules of evolution broken", 2), bullets(broken, "diff-broken", "mono"));
    result.replaceChildren(...parts);
    document.getElementById("diff-summary").textContent = [
      count(added.length, "added"), count(removed.length, "removed"), count(changed.length, "changed"),
      count(broken.length, broken.length === 1 ? "rule broken" : "rules broken"),
    ].join(", ");
    document.getElementById("diff-command").textContent = `kafkawire schema diff ${chosenRelease(from)} ${chosenRelease(to)}`;
  }

  function chosen() {
    draw();
    const address = new URL(location.href);
    address.searchParams.set("from", chosenRelease(from));
    address.searchParams.set("to", chosenRelease(to));
    try { history.replaceState(null, "", address); } catch { /* not allowed for files in some browsers */ }
  }

  const query = new URLSearchParams(location.search);
  const last = data.releases.length - 1;
  const pick = (name, fallback) => (data.releases.includes(name) ? data.releases.indexOf(name) : Math.max(fallback, 0));
  from.value = pick(query.get("from"), last - 1);
  to.value = pick(query.get("to"), last);
  from.addEventListener("change", chosen);
  to.addEventListener("change", chosen);
  document.getElementById("diff-swap").addEventListener("click", () => {
    [from.value, to.value] = [to.value, from.value];
    chosen();
  });
  document.getElementById("diff-form").addEventListener("submit", (event) => event.preventDefault());
  draw();
})();
