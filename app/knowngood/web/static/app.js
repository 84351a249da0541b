// Nothing here is needed to read a page: copy buttons, keys and folds in the matrix, a card beside a cell,
// live regions.
"use strict";

const make = (tag, className, text) => {
  const element = document.createElement(tag);
  element.className = className;
  element.textContent = text;
  return element;
};

// Copy buttons -------------------------------------------------------------------------------------------------------

const said = document.body.dataset;
const copyable = "pre.command, .snippet pre, .prose pre, .box pre";

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

// The matrix: one stop for Tab, keys move, Enter opens ------------------------------------------------------------------

const turnedByKey = { ArrowLeft: "true", ArrowRight: "false" };
let lane = 1; // the column that up and down keep to, also past the heads of groups
let picked = null;

function addKeys(root) {
  for (const grid of root.querySelectorAll("[data-grid]")) {
    grid.setAttribute("role", "grid");
    grid.addEventListener("keydown", pressed);
    grid.addEventListener("click", clicked);
    grid.addEventListener("focusin", arrived);
    grid.addEventListener("pointerover", (event) => mark(grid, cellAt(event)));
    grid.stop = grid.querySelector("tbody:not(.folded) a.q") ?? grid.querySelector("tbody a");
  }
  for (const button of root.querySelectorAll("[data-opens]")) {
    button.hidden = false;
    button.addEventListener("click", () => document.getElementById(button.dataset.opens).showModal());
  }
}

// Only when somebody presses Tab: of 30,000 links it takes a moment that few readers need to wait for.
function leaveTabOrder(event) {
  if (event.key !== "Tab") return;
  for (const grid of document.querySelectorAll("[data-grid]:not([data-left])")) {
    grid.dataset.left = "";
    for (const link of grid.querySelectorAll("tbody a, thead a:not(.turn)")) if (link !== grid.stop) link.tabIndex = -1;
  }
}

function arrived(event) {
  const grid = event.currentTarget;
  const link = event.target;
  if (!link.matches("tbody a, a.head")) return;
  if (grid.stop && grid.stop !== link) grid.stop.tabIndex = -1;
  grid.stop = link;
  link.tabIndex = 0;
  if (!link.matches(".turn")) lane = link.closest("th, td").cellIndex;
  mark(grid, link);
}

function mark(grid, link) {
  const head = link?.matches("a.q") ? grid.tHead.rows[0].cells[link.parentElement.cellIndex] : null;
  if (grid.marked === head) return;
  grid.marked?.classList.remove("here");
  head?.classList.add("here");
  grid.marked = head;
}

function canBeReached(row) {
  if (row.parentElement.matches(".totals")) return false;
  if (row.parentElement.tagName === "THEAD") return row.checkVisibility();
  return row.matches(".group") || !row.parentElement.matches(".folded");
}

function rowFrom(grid, row, step, count = 1) {
  let found = null;
  for (let at = row.rowIndex + step; count > 0 && grid.rows[at]; at += step) {
    if (!canBeReached(grid.rows[at])) continue;
    found = grid.rows[at];
    count -= 1;
  }
  return found;
}

function linkIn(row, x) {
  if (!row) return null;
  if (row.matches(".group")) return row.querySelector(".turn");
  return row.cells[Math.min(x, row.cells.length - 1)]?.querySelector("a:not(.turn)");
}

function linkBeside(row, x, step) {
  for (let at = x + step; row.cells[at]; at += step) {
    const link = linkIn(row, at);
    if (link?.checkVisibility()) return link;
  }
  return null;
}

function goal(grid, link, event) {
  const row = link.closest("tr");
  const x = link.closest("th, td").cellIndex;
  const last = row.cells.length - 1;
  const screen = () => Math.max(1, Math.floor(Math.min(grid.parentElement.clientHeight, innerHeight) / (row.offsetHeight || 40)) - 3);
  switch (event.key) {
    case "ArrowLeft": return linkBeside(row, x, -1);
    case "ArrowRight": return linkBeside(row, x, 1);
    case "ArrowUp": return linkIn(rowFrom(grid, row, -1), lane);
    case "ArrowDown": return linkIn(rowFrom(grid, row, 1), lane);
    case "PageUp": return linkIn(rowFrom(grid, row, -1, screen()), lane);
    case "PageDown": return linkIn(rowFrom(grid, row, 1, screen()), lane);
    case "Home": return event.ctrlKey ? grid.querySelector("tbody a") : linkBeside(row, -1, 1);
    case "End": return event.ctrlKey ? [...grid.querySelectorAll("tbody:last-of-type a")].at(-1) : linkBeside(row, last + 1, -1);
    default: return undefined;
  }
}

function pressed(event) {
  const grid = event.currentTarget;
  const link = event.target;
  if (!link.matches("tbody a, a.head") || event.metaKey || event.altKey) return;
  if (event.ctrlKey && !["Home", "End"].includes(event.key)) return;
  if (link.matches(".turn") && turnedByKey[event.key] === link.ariaExpanded) link.click();
  else if (event.key === "f" && link.closest("tbody")) {
    const turn = link.closest("tbody").querySelector(".turn");
    turn.focus();
    turn.click();
  } else if (event.key === "c" && !link.matches(".turn")) pick(grid, grid.tHead.rows[0].cells[link.closest("th, td").cellIndex]);
  else {
    const next = goal(grid, link, event);
    if (next === undefined) return;
    next?.focus();
  }
  event.preventDefault();
}

function clicked(event) {
  const grid = event.currentTarget;
  const turn = event.target.closest("tbody .turn");
  const head = event.target.closest("thead a:not(.turn)");
  if (turn && fold(grid, turn)) event.preventDefault();
  if (head && event.shiftKey) {
    event.preventDefault();
    pick(grid, head.parentElement);
  }
}

// Rows that did not come along are asked of the server: then the link is followed.
function fold(grid, turn) {
  const group = turn.closest("tbody");
  if (!group.querySelector(".row")) return false;
  turn.ariaExpanded = String(!group.classList.toggle("folded"));
  if ("file" in said) return true;
  const turns = [...grid.querySelectorAll("tbody .turn")];
  const allOpen = grid.dataset.allOpen ? [grid.dataset.allOpen] : [];
  const closed = turns.filter((one) => one.ariaExpanded === "false").map(nameOf);
  const folded = closed.length ? closed : allOpen;
  history.replaceState(null, "", withFolds(location.href, folded));
  for (const link of document.querySelectorAll('.switches a[href^="/"]:not([href^="/api"]), [data-copy-address]')) {
    if (!link.matches("[data-folds]")) link.href = withFolds(link.href, folded);
  }
  for (const one of turns) {
    const others = closed.filter((name) => name !== nameOf(one));
    const turned = one.ariaExpanded === "false" ? others : [...others, nameOf(one)];
    const hash = new URL(one.href).hash;
    one.href = withFolds(one.href, turned.length ? turned : allOpen) + hash;
  }
  for (const form of document.querySelectorAll("form.filter")) {
    form.querySelectorAll('[name="fold"]').forEach((one) => one.remove());
    for (const name of folded) form.append(Object.assign(document.createElement("input"), { type: "hidden", name: "fold", value: name }));
  }
  return true;
}

function nameOf(turn) {
  return turn.dataset.name;
}

function withFolds(address, names) {
  const url = new URL(address);
  url.searchParams.delete("fold");
  for (const name of names) url.searchParams.append("fold", name);
  url.hash = "";
  return url.pathname + url.search;
}

function pick(grid, head) {
  const build = head?.dataset.build;
  const status = document.querySelector("[data-status]");
  if (!build || "file" in said) return;
  if (picked && picked.dataset.build !== build) {
    const asked = new URLSearchParams({ a: picked.dataset.build, b: build, hardware: grid.dataset.hardware });
    location.href = `/compare?${asked}`;
    return;
  }
  const again = picked === head;
  letGo();
  if (again) return;
  picked = head;
  head.classList.add("picked");
  status.textContent = status.dataset.picked.replace("{build}", build);
}

function letGo() {
  if (!picked) return;
  picked.classList.remove("picked");
  picked = null;
  document.querySelector("[data-status]").textContent = "";
}

function anywhere(event) {
  if (event.key === "Escape") {
    hideCard();
    letGo();
  }
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.("input, select, textarea, dialog")) return;
  const query = document.querySelector('[type="search"][name="q"]');
  const keys = document.getElementById("keys");
  if (event.key === "/" && query) query.focus();
  else if (event.key === "?" && keys) keys.showModal();
  else return;
  event.preventDefault();
}

// Copy this view: its address, or the text behind a link. Without a clipboard the link does what links do ---------------

async function copyFrom(event) {
  const link = event.target.closest?.("[data-copy-address], [data-copy-text]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button || !navigator.clipboard) return;
  event.preventDefault();
  const words = link.textContent;
  try {
    const text = "copyText" in link.dataset ? await (await fetch(link.href)).text() : link.href;
    await navigator.clipboard.writeText(text);
    link.textContent = said.copied;
    setTimeout(() => { link.textContent = words; }, 1500);
  } catch {
    location.href = link.href;
  }
}

// A card beside the cell that is pointed at, focused or touched ----------------------------------------------------------

const card = make("div", "card", "");
card.id = "card";
card.setAttribute("role", "tooltip");
card.hidden = true;
let shown = null;
let waiting = 0;
let going = 0;
let touching = false;

function showCard(cell) {
  clearTimeout(going);
  if (cell === shown) return;
  hideCard();
  shown = cell;
  const row = cell.closest("[data-issue]");
  const title = row?.querySelector("th a")?.textContent;
  const label = cell.getAttribute("aria-label");
  card.replaceChildren(make("b", "", title ? label.replace(row.dataset.issue, title) : label));
  card.hidden = false;
  cell.setAttribute("aria-describedby", "card");
  if (touching) card.append(Object.assign(make("a", "", said.open), { href: cell.href }));
  place(cell);
  if (!cell.classList.contains("absent") && !cell.classList.contains("notrun")) {
    waiting = setTimeout(() => fill(cell), 150);
  }
}

function hideCard() {
  clearTimeout(waiting);
  clearTimeout(going);
  card.hidden = true;
  shown?.removeAttribute("aria-describedby");
  shown = null;
}

function leaveCard() { // a moment's grace, in which the pointer may go over to the card and read there
  clearTimeout(going);
  going = setTimeout(hideCard, 120);
}

async function fill(cell) {
  if ("file" in said) return; // nobody is there to be asked
  const answer = await fetch(`/api/v1${cell.getAttribute("href")}`).catch(() => null);
  if (!answer?.ok || shown !== cell) return;
  const known = await answer.json();
  if (shown !== cell) return;
  const parts = [make("p", "", known.reason)];
  if (known.signature_line) parts.push(make("code", "", known.signature_line));
  const titled = ({ title, title_zh }) => (document.documentElement.lang === "zh" && title_zh) || title;
  const found = (verdict) => known.findings.filter((finding) => finding.verdict === verdict).map(titled);
  for (const [words, [first, ...more]] of [[said.cure, found("effective")], [said.partly, found("partial")]]) {
    if (first) parts.push(make("p", "", `${words}: ${first}${more.length ? ` (+${more.length})` : ""}`));
  }
  if (known.measured_at) parts.push(age(new Date(known.measured_at)));
  card.firstChild.after(...parts);
  place(cell);
}

const units = [["day", 86400], ["hour", 3600], ["minute", 60]];

function age(then) {
  const language = document.documentElement.lang;
  const seconds = Math.max(0, (Date.now() - then) / 1000);
  const [unit, size] = units.find(([, size]) => seconds >= size) ?? units.at(-1);
  const words = new Intl.RelativeTimeFormat(language).format(-Math.floor(seconds / size), unit);
  return make("p", "quiet", `${words} (${then.toLocaleString(language)})`);
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

function pointed(event) {
  touching = event.pointerType !== "mouse";
  if (touching) return;
  const cell = cellAt(event);
  if (cell) showCard(cell);
  else if (event.target.closest?.(".card")) clearTimeout(going);
}

// A finger has no way to point without pressing: the first touch shows the card, the second one opens the cell.
function touched(event) {
  const cell = cellAt(event);
  if (touching && cell && cell !== shown) {
    event.preventDefault();
    cell.focus({ preventScroll: true });
    showCard(cell);
  } else if (touching && !cell && !event.target.closest?.(".card")) hideCard();
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
  hideCard();
  if (!renewMatrix(old, fresh)) {
    const scrolls = [...old.querySelectorAll(".scroller")].map((one) => [one.scrollLeft, one.scrollTop]);
    letGo();
    old.innerHTML = fresh.innerHTML;
    old.querySelectorAll(".scroller").forEach((one, at) => { [one.scrollLeft, one.scrollTop] = scrolls[at] ?? [0, 0]; });
    prepare(old);
    if (focused) old.querySelector(`a[href="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
  }
  if (!("live" in fresh.dataset)) delete old.dataset.live;
  return "live" in fresh.dataset;
}

// Where the same rows and columns stand, only what changed is touched: focus, folds and the place read stay as they are.
function renewMatrix(old, fresh) {
  const [mine, theirs] = [old, fresh].map((root) => root.querySelector("[data-grid]"));
  if (!mine || !theirs || mine.tHead.textContent !== theirs.tHead.textContent) return false;
  const [ours, news] = [mine, theirs].map((grid) => [...grid.querySelectorAll("tr.group, tr.row")]);
  const same = (row, at) => row.className === news[at].className && row.cells[0].textContent === news[at].cells[0].textContent;
  if (ours.length !== news.length || !ours.every(same)) return false;
  ours.forEach((row, at) => [...row.cells].forEach((cell, x) => renewCell(cell, news[at].cells[x])));
  mine.querySelector(".totals").innerHTML = theirs.querySelector(".totals").innerHTML;
  for (const place of ["h1", ".banner"]) {
    const [before, after] = [old, fresh].map((root) => root.querySelector(place));
    if (!before !== !after) return false;
    if (before) before.innerHTML = after.innerHTML;
  }
  return true;
}

function renewCell(cell, fresh) {
  const [link, news] = [cell, fresh].map((one) => one.querySelector("a.q"));
  if (!link || !news) {
    if (cell.tagName === "TD" && cell.innerHTML !== fresh.innerHTML) cell.innerHTML = fresh.innerHTML;
  } else if (link.className !== news.className || link.ariaLabel !== news.ariaLabel || link.textContent !== news.textContent) {
    for (const name of ["class", "href", "aria-label"]) link.setAttribute(name, news.getAttribute(name));
    link.textContent = news.textContent;
  }
}

function prepare(root) {
  addCopyButtons(root);
  addKeys(root);
}

document.body.append(card);
prepare(document);
document.addEventListener("pointerover", pointed);
document.addEventListener("pointerdown", (event) => { touching = event.pointerType !== "mouse"; }, { capture: true });
document.addEventListener("pointerout", (event) => { if (!touching && (cellAt(event) || event.target.closest?.(".card"))) leaveCard(); });
document.addEventListener("click", touched, { capture: true });
document.addEventListener("click", copyFrom);
document.addEventListener("focusin", (event) => { const cell = cellAt(event); if (cell?.matches(":focus-visible")) showCard(cell); else if (!touching) hideCard(); });
document.addEventListener("keydown", leaveTabOrder, { capture: true });
document.addEventListener("keydown", anywhere);
document.addEventListener("scroll", hideCard, { capture: true, passive: true });
for (const region of document.querySelectorAll("[data-live]")) follow(region);

// The box that understands everything: Enter sends one line, as it does in every other box; a paste of several keeps its lines. --

for (const box of document.querySelectorAll("textarea[data-sends]")) {
  box.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    box.form.requestSubmit();
  });
}

// The rest of the navigation closes by Escape, and by a click beside it. -----------------------------------------------

const more = document.querySelector("details.more");
document.addEventListener("click", (event) => { if (more && !more.contains(event.target)) more.open = false; });
more?.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || !more.open) return;
  more.open = false;
  more.querySelector("summary").focus();
});

// While somebody types into that box: links to what may be meant, below it and above what follows, so that nothing moves.
// They are ordinary links: arrows go to them and back, Tab and Enter do what they do everywhere. ------------------------

const longestSuggested = 200, patience = 150; // characters, milliseconds

for (const box of document.querySelectorAll("textarea[data-sends]")) {
  const list = make("ul", "suggestions", "");
  const count = make("span", "suggested", "");
  const label = box.labels[0];
  label.id ||= "asked";
  list.setAttribute("aria-labelledby", label.id);
  list.hidden = true;
  count.setAttribute("role", "status");
  box.after(list, count);
  let timer = 0, asking = new AbortController();

  const show = (hits) => {
    list.replaceChildren(...hits.map((hit) => {
      const line = make("li", "", ""), link = make("a", "", hit.title);
      link.href = hit.url;
      if (hit.name && !hit.title.includes(hit.name)) link.append(" ", make("span", "faint mono", hit.name));
      line.append(link);
      return line;
    }));
    list.hidden = !hits.length;
    count.textContent = hits.length ? (box.dataset.suggested ?? "").replace("{n}", hits.length) : "";
  };
  const ask = async () => {
    const text = box.value.trim();
    if (text.length < 2 || text.length > longestSuggested || text.includes("\n")) return show([]);
    asking = new AbortController();
    try {
      const answer = await fetch(`/api/v1/search?limit=8&q=${encodeURIComponent(text)}`, { signal: asking.signal });
      const { hits } = answer.ok ? await answer.json() : { hits: [] };
      if (box.form.contains(document.activeElement)) show(hits);
    } catch (error) {
      if (error.name !== "AbortError") show([]); // without a server there is nothing to suggest, and the form still asks
    }
  };
  box.addEventListener("input", () => {
    clearTimeout(timer);
    asking.abort();
    timer = setTimeout(ask, patience);
  });
  box.form.addEventListener("keydown", (event) => {
    const links = [...list.querySelectorAll("a")], at = links.indexOf(document.activeElement);
    if (event.key === "Escape" && !list.hidden) {
      box.focus();
      show([]);
    } else if (event.key === "ArrowDown" && !list.hidden && (at >= 0 || !box.value.slice(box.selectionEnd).includes("\n"))) {
      links[Math.min(at + 1, links.length - 1)].focus();
    } else if (event.key === "ArrowUp" && at >= 0) {
      (links[at - 1] ?? box).focus();
    } else return;
    event.preventDefault();
  });
  box.form.addEventListener("focusout", (event) => { if (!box.form.contains(event.relatedTarget)) show([]); });
  box.form.addEventListener("submit", () => { clearTimeout(timer); asking.abort(); });
}

// The answer to a paste is shown under the address that it keeps: it can be loaded again and shared. --------------------

const kept = document.querySelector("a[data-kept]");
if (kept) history.replaceState(null, "", kept.href);
