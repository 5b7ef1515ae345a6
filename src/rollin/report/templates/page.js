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

// Rows in the order that a heading says: empty values at the end, equal ones as they were.
function sortRows(header) {
  const body = header.closest("table").tBodies[0];
  const column = header.cellIndex;
  const direction = header.getAttribute("aria-sort") === "descending" ? -1 : 1;
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
}

function sortBy(header) {
  const next = header.getAttribute("aria-sort") === "ascending" ? "descending" : "ascending";
  for (const other of header.parentElement.querySelectorAll("[aria-sort]")) {
    other.setAttribute("aria-sort", "none");
  }
  header.setAttribute("aria-sort", next);
  sortRows(header);
}

// The line of a legend's button, in every panel below it, as the button says.
function showLine(key) {
  const hidden = key.getAttribute("aria-pressed") !== "true";
  for (const part of key.closest("[data-curves]").querySelectorAll("svg [data-line]")) {
    if (part.dataset.line === key.dataset.line) part.classList.toggle("off", hidden);
  }
}

// One listener for all buttons: a page that follows its runs gets new ones.
document.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  const header = button?.closest("table.sortable th[aria-sort]");
  if (header) {
    sortBy(header);
  } else if (button?.matches("[data-curves] button[data-line]")) {
    button.setAttribute("aria-pressed", String(button.getAttribute("aria-pressed") !== "true"));
    showLine(button);
  }
});

// Tables that are wider than the screen say so.
function markWide() {
  for (const card of document.querySelectorAll(".scroll")) {
    card.toggleAttribute("data-wide", card.scrollWidth > card.clientWidth);
  }
}
markWide();
addEventListener("resize", markWide);
document.addEventListener("toggle", markWide, true);
