// Decisions that wait for an outcome, oldest first. A row that was shown never moves.
// New rows are added at the end, and rows that got an outcome elsewhere are marked.

import { Watched, at, call } from "./api.js";
import { age, armName, busy, count, duration, fill, h, named, whom } from "./dom.js";
import { correctButton, tellControls, word } from "./tell.js";

const PAGE = 10;

// own: the units of a writer's own key, which have no number and come from another route.
export function pendingCard(state, { own = false } = {}) {
  const title = own ? "Your pending units" : "Waiting for outcomes";
  const search = h("input", { id: "find-unit", type: "search", placeholder: "part of the unit's name", autocomplete: "off" });
  const list = h("ul", { class: "plain", id: "waiting" }), note = h("p", { class: "dim" }), delays = h("dl", { class: "facts small" });
  const more = h("button", { type: "button", hidden: true }, "Show more"), again = h("button", { type: "button", class: "link", hidden: true }, "Clear finished rows");
  const element = h("section", { class: "card", "aria-label": title }, h("h2", {}, title), delays,
    h("div", { class: "field" }, h("label", { for: "find-unit" }, "Search"), search), list, note, h("div", { class: "row" }, more, again));
  const rows = new Map(); // by decision, in the order in which they are shown
  const watched = new Watched();
  let following = null, asked = "";

  const path = (after, limit) => {
    const wish = new URLSearchParams({ limit });
    if (after !== null) wish.set("after", after);
    if (search.value.trim()) wish.set("search", search.value.trim());
    return `${at(state.name)}/${own ? "units" : "waiting"}?${wish}`;
  };
  const read = (page) => ({ found: own ? page.units.map((u) => ({ ...u, id: u.decision })) : page.decisions, following: page.following });
  const load = async (after, limit) => read(await call(path(after, limit)));

  function row(d) {
    const right = h("span", { class: "right" });
    const item = h("li", { class: "row between", "data-decision": d.id }, h("span", { class: "what" }, named(whom(d), "strong"),
      h("span", { class: "dim line" }, armName(d.arm, d.arm_name), h("span", {}, `waits ${age(d.asked_at)}`, d.imputed && ", imputed meanwhile"))), right);
    const entry = { item, right, d, done: false };
    const wait = () => {
      entry.done = false;
      item.className = "row between";
      fill(right, state.me.can("tell") && tellControls(state, d, finish));
    };
    const finish = (value) => {
      entry.done = true;
      again.hidden = false;
      item.className = "row between done";
      fill(right, h("span", { class: "good" }, `✓ ${word(state.view.binary, value)} stored `), state.me.can("amend") && correctButton(state, d, value, async () => { wait(); await state.refresh(); }));
      state.refresh();
    };
    entry.elsewhere = () => { entry.done = true; again.hidden = false; item.className = "row between done"; fill(right, h("span", { class: "dim" }, "has an outcome now")); };
    wait();
    return entry;
  }

  function add(found) {
    for (const d of found) {
      if (rows.has(d.id)) continue;
      const entry = row(d);
      rows.set(d.id, entry);
      list.append(entry.item);
    }
  }

  function say() {
    more.hidden = following === null;
    const waiting = state.view.results?.waiting;
    note.textContent = rows.size ? (waiting > rows.size && !asked ? `The oldest ${rows.size} of ${count(waiting)}.` : "")
      : asked ? "No pending unit matches." : following !== null ? "None among the decisions that were searched; continue with Show more." : "No decision waits for an outcome.";
  }

  async function begin() {
    asked = search.value.trim();
    const page = await load(null, PAGE);
    rows.clear();
    fill(list);
    again.hidden = true;
    following = page.following;
    add(page.found);
    say();
  }

  // Load the same part again: rows that are shown do not move.
  async function update(fresh = false) {
    if (asked !== search.value.trim()) return null;
    const answer = await watched.look(path(null, Math.min(Math.max(rows.size, PAGE), 200)), fresh);
    if (answer === null) return watched.version;
    const page = read(answer);
    const waiting = new Set(page.found.map((d) => d.id)), whole = page.following === null;
    const last = page.found.at(-1)?.asked_at ?? "";
    for (const [id, entry] of rows) {
      if (!entry.done && !waiting.has(id) && (whole || entry.d.asked_at <= last)) entry.elsewhere();
    }
    if (rows.size < PAGE || following === null) { add(page.found); following = page.following; }
    say();
    return watched.version;
  }

  let timer = null;
  search.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(() => begin().catch(() => {}), 250); });
  more.addEventListener("click", busy(more, async () => {
    const page = await load(following, PAGE);
    following = page.following;
    add(page.found);
    say();
  }));
  again.addEventListener("click", busy(again, begin));

  const fact = (label, value) => h("div", { class: "fact" }, h("dt", {}, label), h("dd", {}, value));
  const showDelays = (d) => fill(delays, fact("median delay", duration(d.delay_median)), fact("90 % within", duration(d.delay_p90)),
    fact("median age", duration(d.age_median)), fact("oldest", duration(d.age_most)));
  return { element, begin, update, showDelays };
}
