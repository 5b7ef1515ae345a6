
// A page that follows its runs: it asks what is new, and changes only what differs, so that
// scroll positions, open parts, sorted tables and hidden lines stay as the reader has put them.
const READERS = { DETAILS: "open", TH: "aria-sort", BUTTON: "aria-pressed" };
const POLL = 1000; // milliseconds between two questions
const GONE = 3; // of them without an answer

// What tells a part from others beside it, whose number and order may change.
function nameOf(node) {
  if (node.nodeType !== Node.ELEMENT_NODE) return "";
  const own = node.id || node.dataset.line || node.dataset.run;
  const told = own || node.getAttribute("aria-labelledby") || node.getAttribute("aria-label");
  if (told) return `${node.nodeName} ${told}`;
  return node.nodeName === "TH" ? `TH ${node.textContent}` : "";
}

function follow(old, fresh) {
  if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.data !== fresh.data) old.data = fresh.data;
    return;
  }
  if (old.nodeName.toLowerCase() === "svg") {
    if (old.outerHTML !== fresh.outerHTML) old.replaceWith(document.importNode(fresh, true));
    return;
  }
  const kept = READERS[old.nodeName];
  for (const { name } of Array.from(old.attributes)) {
    if (name !== kept && !fresh.hasAttribute(name)) old.removeAttribute(name);
  }
  for (const { name, value } of fresh.attributes) {
    if (name !== kept && old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  followChildren(old, fresh);
}

function followChildren(old, fresh) {
  const named = new Map(Array.from(old.childNodes, (node) => [nameOf(node), node]));
  let at = old.firstChild;
  for (const wanted of Array.from(fresh.childNodes)) {
    const name = nameOf(wanted);
    const plain = at && !nameOf(at) && at.nodeName === wanted.nodeName ? at : null;
    const found = name ? named.get(name) : plain;
    named.delete(name);
    if (!found) {
      old.insertBefore(document.importNode(wanted, true), at);
      continue;
    }
    if (found === at) at = at.nextSibling;
    else old.insertBefore(found, at);
    follow(found, wanted);
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}

// The first part that the reader sees stays where it is, whatever grows above it.
function inPlace(change) {
  const parts = document.querySelectorAll("h2, h3, h4, p, .card, .keys, .panel");
  const seen = Array.from(parts).find((part) => part.getBoundingClientRect().top >= 0);
  const before = seen?.getBoundingClientRect().top;
  change();
  if (window.scrollY > 0 && seen?.isConnected) {
    const moved = seen.getBoundingClientRect().top - before;
    if (moved) window.scrollBy({ top: moved, behavior: "instant" });
  }
}

function take(text, parts) {
  const fresh = new DOMParser().parseFromString(text, "text/html");
  inPlace(() => {
    for (const part of parts) {
      follow(document.querySelector(part), fresh.querySelector(part));
    }
    for (const header of document.querySelectorAll("th[aria-sort]")) {
      if (header.getAttribute("aria-sort") !== "none") sortRows(header);
    }
    for (const key of document.querySelectorAll("button[data-line][aria-pressed='false']")) {
      showLine(key);
    }
    markWide();
  });
  if (fresh.title) document.title = fresh.title;
}

async function ask(what) {
  const answer = await fetch(what, { cache: "no-store", signal: AbortSignal.timeout(10000) });
  if (!answer.ok) throw new Error(`${answer.status}`);
  return answer;
}

const shown = { report: "", progress: "", changed: 0 };
let silent = 0;

function tell() {
  const sign = document.getElementById("live");
  const time = shown.changed ? new Date(1000 * shown.changed).toLocaleTimeString() : "";
  const gone = silent >= GONE;
  const text = gone
    ? `No answer from rollin watch: this is how it stood at ${time || "the beginning"}.`
    : `Live, last changed ${time || "before this page was opened"}`;
  if (sign.textContent !== text) sign.textContent = text;
  sign.classList.toggle("gone", gone);
  sign.setAttribute("role", gone ? "alert" : "note");
}

async function look() {
  try {
    const now = await (await ask("version")).json();
    if (now.report !== shown.report) {
      take(await (await ask(".")).text(), ["header", "main", "footer"]);
    } else if (now.progress !== shown.progress) {
      take(await (await ask("progress")).text(), ["#progress"]);
    }
    Object.assign(shown, now);
    silent = 0;
  } catch {
    silent += 1;
  }
  tell();
}

async function goOn() {
  if (!document.hidden) await look();
  setTimeout(goOn, POLL);
}
goOn();
