// Keeps an open page up to date: the server says what changed (src/kohort/console/live.py), this puts it in its place.
// All of it goes in as text, so that no name or value can become a part of the page.
"use strict";

(() => {
  const address = document.body.dataset.events;
  if (!address || !window.EventSource) return;

  const bar = document.getElementById("live");
  const said = document.getElementById("live-text");
  const button = document.getElementById("pause");
  let source = null;
  let paused = false;

  function draw(cell) {
    const space = "http://www.w3.org/2000/svg";
    const picture = document.createElementNS(space, "svg");
    const attributes = { class: "line", viewBox: "0 -1 90 22", "aria-hidden": "true", focusable: "false" };
    for (const [name, value] of Object.entries(attributes)) picture.setAttribute(name, value);
    picture.append(document.createElementNS(space, "polyline"));
    cell.replaceChildren(picture, " ", document.createElement("span"));
  }

  function fill(cell, [text, href = "", tone = "", line = ""]) {
    const numeric = cell.classList.contains("number");
    cell.className = [numeric ? "number" : "", tone].filter(Boolean).join(" ");
    if (!cell.className) cell.removeAttribute("class");
    let inner = cell;
    if (href) {
      inner = cell.querySelector("a") || cell.appendChild(document.createElement("a"));
      if (inner.getAttribute("href") !== href) inner.setAttribute("href", href);
    }
    if (line) {
      if (!cell.querySelector("svg")) draw(cell);
      cell.querySelector("polyline").setAttribute("points", line);
      inner = cell.querySelector("span");
    }
    if (inner.textContent !== text || (!line && cell.querySelector("svg"))) inner.textContent = text;
  }

  function newRow(key, columns) {
    const row = document.createElement("tr");
    row.dataset.key = key;
    for (const [at, column] of columns.entries()) {
      const cell = document.createElement(at ? "td" : "th");
      if (!at) cell.scope = "row";
      if (column.classList.contains("number")) cell.className = "number";
      row.append(cell);
    }
    return row;
  }

  function changeTable(table, change) {
    const body = table.tBodies[0];
    const columns = [...table.tHead.rows[0].cells];
    const rows = new Map([...body.rows].map((row) => [row.dataset.key, row]));
    for (const [key, cells] of Object.entries(change.rows || {})) {
      if (!rows.has(key)) rows.set(key, newRow(key, columns));
      cells.forEach((cell, at) => fill(rows.get(key).cells[at], cell));
    }
    if (!change.order) return;
    change.order.forEach((key, at) => {
      const row = rows.get(key);
      const there = body.rows[at];
      if (row && row !== there) {
        const focused = row.contains(document.activeElement) ? document.activeElement : null;
        body.insertBefore(row, there || null);
        if (focused) focused.focus({ preventScroll: true });
      }
    });
    while (body.rows.length > change.order.length) body.lastElementChild.remove();
  }

  function change(found) {
    for (const [name, text] of Object.entries(found.texts || {})) {
      for (const each of document.querySelectorAll("[data-text], [data-points], [data-d], [data-viewbox], [data-tone]")) {
        if (each.dataset.points === name) each.setAttribute("points", text);
        if (each.dataset.d === name) each.setAttribute("d", text);
        if (each.dataset.viewbox === name) each.setAttribute("viewBox", text);
        if (each.dataset.tone === name) each.className = text;
        if (each.dataset.text !== name) continue;
        if (each.textContent !== text) each.textContent = text;
        if ("optional" in each.dataset) each.hidden = !text;
      }
    }
    for (const [name, part] of Object.entries(found.tables || {})) {
      for (const table of document.querySelectorAll("[data-table]")) {
        if (table.dataset.table !== name) continue;
        changeTable(table, part);
        const empty = !table.tBodies[0].rows.length;
        for (const each of document.querySelectorAll("[data-filled], [data-empty]")) {
          if (each.dataset.filled === name) each.hidden = empty;
          if (each.dataset.empty === name) each.hidden = !empty;
        }
      }
    }
  }

  function say(text) {
    if (said.textContent !== text) said.textContent = text;
  }

  function start() {
    source = new EventSource(address);
    source.addEventListener("open", () => say("Up to date"));
    source.addEventListener("change", (event) => change(JSON.parse(event.data)));
    source.addEventListener("error", (event) => {
      const gone = event.target.readyState === EventSource.CLOSED;
      say(gone ? "No updates: load the page again" : "The console doesn't answer; trying again");
    });
  }

  function stop() {
    if (source) source.close();
    source = null;
  }

  // Browsers open few connections to one place: a page that nobody sees keeps none.
  function startOrStop() {
    if (paused || document.visibilityState === "hidden") stop();
    else if (!source) start();
  }

  button.addEventListener("click", () => {
    paused = !paused;
    button.textContent = paused ? "Resume updates" : "Pause updates";
    if (paused) say("Paused");
    startOrStop();
  });
  document.addEventListener("visibilitychange", startOrStop);
  window.addEventListener("pagehide", stop);
  window.addEventListener("pageshow", startOrStop);
  bar.hidden = false;
  startOrStop();
})();
