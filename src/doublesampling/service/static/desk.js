// Ask and tell by hand, and the decisions that wait for their outcome.

import { at, call } from "./api.js";
import { age, busy, count, duration, fill, h, swatch, toast } from "./dom.js";

// As many numbers as wanted; an empty place is no zero.
function numbers(text, wanted) {
  const parts = text.split(",").map((part) => part.trim());
  if (parts.length !== wanted || parts.some((part) => part === "" || !Number.isFinite(Number(part)))) {
    throw new Error(`Context: ${wanted} numbers with commas between them, got "${text}".`);
  }
  return parts.map(Number);
}

async function tell(state, id, reward) {
  const told = await call(`${at(state.name)}/decisions/${encodeURIComponent(id)}/outcome`, { method: "PUT", body: { reward } });
  const since = told.reward === reward ? "This outcome was there already." : `An outcome was there already, and was corrected to ${told.reward} since: that stays.`;
  toast(told.repeated ? since : "Stored.");
  await state.refresh();
}

// Two buttons where rewards are 0 or 1, a number otherwise.
export function tellControls(state, id, what, done = () => {}) {
  const act = (button, reward) => busy(button, async () => { await tell(state, id, reward()); done(); });
  if (state.view.binary) {
    return h("span", { class: "tell" }, [["1", "success"], ["0", "failure"]].map(([value, word]) => {
      const button = h("button", { type: "button", "aria-label": `Tell ${word} for ${what}` }, `${word} (${value})`);
      button.addEventListener("click", act(button, () => Number(value)));
      return button;
    }));
  }
  const input = h("input", { type: "number", step: "any", required: true, "aria-label": `Outcome for ${what}` });
  const button = h("button", {}, "Tell");
  const form = h("form", { class: "tell" }, input, button);
  form.addEventListener("submit", act(button, () => Number(input.value)));
  return form;
}

export function deskCard(state) {
  const unit = h("input", { id: "unit", maxlength: 500, autocomplete: "off", placeholder: "optional, such as patient-17" });
  const context = h("input", { id: "context", autocomplete: "off", placeholder: "0.5, 1" });
  const contextField = h("div", { class: "field" }, h("label", { for: "context" }, "Context"), context);
  const button = h("button", { class: "primary" }, "Ask for an arm");
  const answer = h("div", { class: "answer", role: "status", "aria-live": "polite" });
  const paused = h("p", { class: "dim" });
  const form = h("form", {}, h("div", { class: "field" }, h("label", { for: "unit" }, "Unit"), unit), contextField, button, paused);
  const id = h("input", { id: "told-id", autocomplete: "off", required: true });
  const byId = h("div", { class: "row" });

  form.addEventListener("submit", busy(button, async () => {
    fill(answer); // an earlier answer must not stand beside a refusal
    const body = {};
    if (unit.value.trim()) body.unit = unit.value.trim();
    if (state.view.dimension) body.context = numbers(context.value, state.view.dimension);
    const made = await call(`${at(state.name)}/decisions`, { method: "POST", body, headers: { "Idempotency-Key": crypto.randomUUID?.() ?? `${Date.now()}-${Math.random()}` } });
    const what = made.unit ?? `decision ${made.number}`;
    const told = h("p", { class: "dim" });
    const controls = tellControls(state, made.id, what, () => { controls.remove(); told.textContent = "Outcome stored."; });
    fill(answer, h("p", {}, made.repeated ? `${what} has its arm already:` : `${what} gets`),
      h("p", { class: "big", id: "asked-arm" }, swatch(made.arm), made.arm_name),
      h("p", { class: "dim" }, `Decision ${made.number}, id `, h("code", { id: "asked-id" }, made.id)), controls, told);
    unit.value = "";
    await state.refresh();
  }));
  id.addEventListener("input", () => fill(byId, id.value.trim() ? tellControls(state, id.value.trim(), "this decision", () => { id.value = ""; fill(byId); }) : []));

  const element = h("section", { class: "card", "aria-label": "Ask and tell" }, h("h2", {}, "Ask and tell"), form, answer,
    h("details", {}, h("summary", {}, "Tell an earlier decision"), h("div", { class: "field" }, h("label", { for: "told-id" }, "Decision id"), id), byId));
  return {
    element,
    update: () => {
      contextField.hidden = !state.view.dimension;
      context.required = !!state.view.dimension;
      button.disabled = state.view.status === "paused";
      paused.textContent = state.view.status === "paused" ? "Paused: no new decisions. Outcomes may still be told." : "";
    },
  };
}

export function pendingCard(state) {
  const delays = h("dl", { class: "facts small" }), rows = h("div", {}), more = h("div", {});
  const element = h("section", { class: "card", "aria-label": "Pending outcomes" }, h("h2", {}, "Pending outcomes and delays"), delays, rows, more);
  let before = null;

  const fact = (label, value) => h("div", { class: "fact" }, h("dt", {}, label), h("dd", {}, value));
  const row = (d) => h("li", { class: "row between" }, h("span", {}, swatch(d.arm), d.unit ?? `decision ${d.number}`,
    h("span", { class: "dim" }, ` ${d.arm_name}, for ${age(d.asked_at)}${d.imputed ? ", imputed meanwhile" : ""}`)),
  state.me.role === "admin" && tellControls(state, d.id, d.unit ?? `decision ${d.number}`));

  async function older(list, button) {
    const page = await call(`${at(state.name)}/decisions?status=waiting&limit=8&before=${before}`);
    before = page.following;
    list.append(...page.decisions.map(row));
    if (before === null) button.remove();
    return page.decisions.length;
  }

  async function update() {
    const page = await call(`${at(state.name)}/decisions?status=waiting&limit=8&before=4611686018427387903`);
    before = page.following;
    const list = h("ul", { class: "plain" }, page.decisions.map(row));
    fill(rows, page.decisions.length ? list : h("p", { class: "dim" }, state.view.results.waiting
      ? `${count(state.view.results.waiting)} wait, none among the latest 5,000 decisions.` : "Nothing is waited for."));
    if (!page.decisions.length) rows.append(list);
    const button = h("button", {}, "Look further back");
    button.addEventListener("click", busy(button, () => older(list, button)));
    fill(more, before !== null && state.view.results.waiting > page.decisions.length ? button : []);
  }
  const showDelays = (d) => fill(delays, fact("usual delay (median)", duration(d.delay_median)), fact("nine in ten within", duration(d.delay_p90)),
    fact("waiting, median", duration(d.age_median)), fact("waiting longest", duration(d.age_most)));
  state.onHealth = (health) => showDelays(health.delays);
  return { element, update };
}
