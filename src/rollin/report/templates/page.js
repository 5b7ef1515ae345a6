"use strict";

// Words by their letters, and by the numbers in them as such: 0.75 comes before 0.8.
function compareWords(a, b) {
  const [one, two] = [a, b].map((text) => text.split(/(\d+(?:\.\d+)?)/));
  for (let i = 0; i < Math.min(one.length, two.length); i += 1) {
    const order = i % 2 ? Number(one[i]) - Number(two[i]) : one[i].localeCompare(two[i], "en");
    if (order) return order;
  }
  return one.length - two.length;
}

// Sorting: empty values stay at the end, equal ones in the order they had.
function sortBy(header) {
  const table = header.closest("table");
  const body = table.tBodies[0];
  const column = header.cellIndex;
  const direction = header.getAttribute("aria-sort") === "ascending" ? -1 : 1;
  const keyed = Array.from(body.rows, (row) => {
    const cell = row.cells[column];
    return [(cell.dataset.value ?? cell.textContent).trim(), row];
  });
  keyed.sort(([a], [b]) => {
    if (a === "" || b === "") return (a === "") - (b === "");
    const [x, y] = [Number(a), Number(b)];
    const order = Number.isNaN(x) || Number.isNaN(y) ? compareWords(a, b) : x - y;
    return direction * order;
  });
  body.append(...keyed.map(([, row]) => row));
  for (const other of header.parentElement.querySelectorAll("[aria-sort]")) {
    other.setAttribute("aria-sort", "none");
  }
  header.setAttribute("aria-sort", direction === 1 ? "ascending" : "descending");
}

for (const button of document.querySelectorAll("table.sortable th[aria-sort] button")) {
  button.addEventListener("click", () => sortBy(button.closest("th")));
}

// A legend's button hides its line in every panel below.
for (const block of document.querySelectorAll("[data-curves]")) {
  for (const key of block.querySelectorAll("button[data-line]")) {
    key.addEventListener("click", () => {
      const shown = key.getAttribute("aria-pressed") !== "true";
      key.setAttribute("aria-pressed", String(shown));
      for (const part of block.querySelectorAll("svg [data-line]")) {
        if (part.dataset.line === key.dataset.line) part.classList.toggle("off", !shown);
      }
    });
  }
}
