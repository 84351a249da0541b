// Nothing here is needed to read a page: copy buttons, arrow keys in the matrix, a card beside a cell, live regions.
"use strict";

const make = (tag, className, text) => {
  const element = document.createElement(tag);
  element.className = className;
  element.textContent = text;
  return element;
};

// Copy buttons -------------------------------------------------------------------------------------------------------

const said = document.body.dataset;
const copyable = "pre.command, .snippet pre, .prose pre";

function addCopyButtons(root) {
  for (const pre of root.querySelectorAll(copyable)) {
    if (pre.parentElement.classList.contains("copyable")) continue;
    const frame = make("div", "copyable", "");
    const button = make("button", "copy", said.copy);
    button.type = "button";
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(pre.textContent.trimEnd());
        button.textContent = said.copied;
      } catch {
        getSelection().selectAllChildren(pre); // no clipboard without https: the reader has only to press Ctrl+C
      }
      setTimeout(() => { button.textContent = said.copy; }, 1500);
    });
    pre.replaceWith(frame);
    frame.append(pre, button);
  }
}

// Arrow keys in the matrix: one stop for Tab, arrows move, Enter opens ------------------------------------------------

function cellsOf(grid) {
  return [...grid.querySelectorAll("tr.row")].map((row) => [...row.querySelectorAll("a.q")]);
}

function addArrowKeys(root) {
  for (const grid of root.querySelectorAll("[data-grid]")) {
    const cells = cellsOf(grid).flat();
    if (!cells.length) continue;
    cells.forEach((cell) => { cell.tabIndex = -1; });
    cells[0].tabIndex = 0;
    grid.addEventListener("keydown", move);
    grid.addEventListener("focusin", (event) => {
      if (!event.target.matches("a.q")) return;
      grid.querySelectorAll('a.q[tabindex="0"]').forEach((cell) => { cell.tabIndex = -1; });
      event.target.tabIndex = 0;
    });
  }
}

const steps = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };

function move(event) {
  if (!event.target.matches("a.q") || event.ctrlKey || event.metaKey || event.altKey) return;
  const rows = cellsOf(event.currentTarget).filter((row) => row[0].checkVisibility());
  const y = rows.findIndex((row) => row.includes(event.target));
  const x = rows[y].indexOf(event.target);
  let next;
  if (event.key in steps) next = rows[y + steps[event.key][0]]?.[x + steps[event.key][1]];
  else if (event.key === "Home") next = rows[y][0];
  else if (event.key === "End") next = rows[y].at(-1);
  else return;
  event.preventDefault();
  next?.focus();
}

// A card beside the cell that is pointed at or focused -----------------------------------------------------------------

const card = make("div", "card", "");
card.hidden = true;
let shown = null;
let waiting = 0;

function showCard(cell) {
  if (cell === shown) return;
  hideCard();
  shown = cell;
  card.replaceChildren(make("b", "", cell.getAttribute("aria-label")));
  card.hidden = false;
  place(cell);
  if (!cell.classList.contains("absent") && !cell.classList.contains("notrun")) {
    waiting = setTimeout(() => fill(cell), 150);
  }
}

function hideCard() {
  clearTimeout(waiting);
  card.hidden = true;
  shown = null;
}

async function fill(cell) {
  const answer = await fetch(`/api/v1${cell.getAttribute("href")}`).catch(() => null);
  if (!answer?.ok || shown !== cell) return;
  const known = await answer.json();
  if (shown !== cell) return;
  card.append(make("p", "", known.reason));
  if (known.signature_line) card.append(make("code", "", known.signature_line));
  const cures = known.findings.filter((finding) => finding.verdict === "effective").map((finding) => finding.id);
  if (cures.length) card.append(make("p", "", `✓ ${cures.join(", ")}`));
  if (known.measured_at) card.append(make("p", "quiet", new Date(known.measured_at).toLocaleString(document.documentElement.lang)));
  place(cell);
}

function place(cell) {
  const at = cell.getBoundingClientRect();
  const size = card.getBoundingClientRect();
  const below = at.bottom + size.height + 12 < innerHeight;
  card.style.left = `${Math.max(8, Math.min(at.left, innerWidth - size.width - 8))}px`;
  card.style.top = `${below ? at.bottom + 6 : Math.max(8, at.top - size.height - 6)}px`;
}

function cellAt(event) {
  return event.target.closest?.("a.q") ?? null;
}

// Live regions: what changes is told by the event stream, what it looks like now is asked of the page itself ------------

function follow(region) {
  const source = new EventSource(region.dataset.live);
  let pending = 0;
  source.onmessage = () => {
    pending ||= setTimeout(async () => {
      pending = 0;
      if (!(await renew())) source.close();
    }, 700);
  };
}

async function renew() {
  const answer = await fetch(location.href, { cache: "no-cache" }).catch(() => null);
  if (!answer?.ok) return true;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const fresh = page.getElementById("live");
  const old = document.getElementById("live");
  const focused = document.activeElement?.getAttribute?.("href");
  const typing = old.contains(document.activeElement) && document.activeElement.matches("input, select");
  if (!fresh || typing) return true;
  const scrolls = [...old.querySelectorAll(".scroller")].map((one) => [one.scrollLeft, one.scrollTop]);
  const folded = [...old.querySelectorAll(".fold")].map((one) => one.checked);
  hideCard();
  old.innerHTML = fresh.innerHTML;
  old.querySelectorAll(".scroller").forEach((one, at) => { [one.scrollLeft, one.scrollTop] = scrolls[at] ?? [0, 0]; });
  old.querySelectorAll(".fold").forEach((one, at) => { one.checked = folded[at] ?? false; });
  prepare(old);
  if (focused) old.querySelector(`a[href="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
  if (!("live" in fresh.dataset)) delete old.dataset.live;
  return "live" in fresh.dataset;
}

function prepare(root) {
  addCopyButtons(root);
  addArrowKeys(root);
}

document.documentElement.classList.add("js");
document.body.append(card);
prepare(document);
document.addEventListener("pointerover", (event) => { const cell = cellAt(event); if (cell && event.pointerType === "mouse") showCard(cell); });
document.addEventListener("pointerout", (event) => { if (cellAt(event)) hideCard(); });
document.addEventListener("focusin", (event) => { const cell = cellAt(event); if (cell?.matches(":focus-visible")) showCard(cell); else hideCard(); });
document.addEventListener("keydown", (event) => { if (event.key === "Escape") hideCard(); });
document.addEventListener("scroll", hideCard, { capture: true, passive: true });
for (const region of document.querySelectorAll("[data-live]")) follow(region);
