// Health: whether the log replays, and whether arms were chosen as often as their logged propensities predict.

import { Watched, at, call } from "./api.js";
import { armName, busy, clock, count, fill, h } from "./dom.js";

const MANY = 10;
const ODD = 4; // deviations beyond which an error is likely: chance alone reaches this once in 16,000

export function healthCard(state, pending) {
  const status = h("p", { id: "replay" }), table = h("div", {}), button = h("button", {}, "Replay now");
  const element = h("section", { class: "card", "aria-label": "Health" }, h("h2", {}, "Health"),
    h("div", { class: "row between" }, status, button), table);
  const watched = new Watched();
  let asked = false;

  function say(replay) {
    status.className = "";
    if (!replay) { status.textContent = "Not replayed yet. A replay recomputes every decision from the log."; return; }
    if (replay.status === "running") { status.textContent = "Replaying…"; return; }
    if (replay.status === "failed") { status.className = "error"; status.textContent = "The replay failed; see the server's log."; return; }
    status.className = replay.agrees ? "good" : "error";
    const when = `${clock(replay.replayed_at)}${replay.current ? "" : ", before the latest changes"}`;
    status.textContent = replay.agrees ? `✓ Replay agrees on all ${count(replay.decisions)} decisions (${when}).`
      : `✗ Replay differs on ${count(replay.different)} of ${count(replay.decisions)} decisions (${when}): ${replay.differences[0]}`;
  }

  async function replay() {
    say({ status: "running" });
    let found = await call(`${at(state.name)}/replay`);
    while (found.status === "running" && element.isConnected) found = await call(`${at(state.name)}/replay`);
    say(found);
  }

  async function update() {
    const health = await watched.look(`${at(state.name)}/health`);
    if (!health) return;
    pending.showDelays(health.delays);
    say(health.replay);
    if (!asked && !health.replay && state.view.results.decisions > 0 && state.view.results.decisions <= 2000) {
      asked = true;
      replay().catch(() => {});
    }
    const every = health.propensities.map((arm, i) => [arm, i]);
    const shown = every.length <= MANY ? every : [...every].sort(([a], [b]) => Math.abs(b.deviations ?? 0) - Math.abs(a.deviations ?? 0)).slice(0, MANY);
    const far = (x) => (x === null ? "–" : `${x >= 0 ? "+" : "−"}${Math.abs(x).toFixed(1)}`);
    fill(table, h("h3", {}, "Choices compared with logged propensities"),
      h("div", { class: "scroll" }, h("table", {}, h("thead", {}, h("tr", {}, ["Arm", "Played", "Expected", "Deviations"].map((n, i) => h("th", { scope: "col", class: i ? "num" : null }, n)))),
        h("tbody", {}, shown.map(([arm, i]) => h("tr", { class: Math.abs(arm.deviations ?? 0) > ODD ? "error" : null },
          h("th", { scope: "row" }, armName(i, arm.name)), h("td", { class: "num" }, count(arm.observed)),
          h("td", { class: "num" }, arm.expected.toLocaleString("en", { maximumFractionDigits: 1 })), h("td", { class: "num" }, far(arm.deviations))))))),
      h("p", { class: "dim" }, `Expected is the sum of the propensities that ${count(health.judged)} decisions logged; more than ${ODD} standard deviations away is suspicious.`
        + (shown.length < every.length ? ` The ${MANY} of ${every.length} arms that deviate most.` : "") + (health.complete ? "" : " Still counting a long log…")));
  }
  button.addEventListener("click", busy(button, replay));
  return { element, update };
}
