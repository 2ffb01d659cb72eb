// Tell an outcome after a confirmation with unit, arm and value; correct it with a reason.

import { at, call, decisionAt } from "./api.js";
import { ask, busy, field, h, reward as shown, swatch, toast, whom } from "./dom.js";

export const word = (binary, value) => (binary ? (value === 1 ? "success (1)" : "failure (0)") : shown(value));

// Unit, arm and value, shown before the outcome is stored.
const facts = (d, value) => h("dl", { class: "confirm" },
  h("dt", {}, "Unit"), h("dd", { class: "big" }, whom(d)),
  d.arm_name && [h("dt", {}, "Arm"), h("dd", { class: "big" }, swatch(d.arm), d.arm_name)],
  h("dt", {}, "Outcome"), h("dd", { class: "big" }, value));

// Returns true where something was stored.
export async function tell(state, d, value) {
  const said = word(state.view.binary, value);
  const sure = await ask("Store this outcome?", facts(d, said), { yes: `Store ${said}` });
  if (!sure) return false;
  const told = d.id ? await call(`${decisionAt(state.name, d.id)}/outcome`, { method: "PUT", body: { reward: value } })
    : await call(`${at(state.name)}/units/outcome`, { method: "PUT", body: { unit: d.unit, reward: value } });
  if (!told.repeated) toast(`Stored: ${said} for ${whom(d)}.`);
  else if (told.detail) toast(told.detail, true);
  else if (told.reward === value) toast("This outcome was stored already.");
  else toast(`An outcome was stored already and has been corrected to ${told.reward} since; nothing was changed.`, true);
  return !told.repeated;
}

// Two buttons where rewards are 0 or 1, a number otherwise.
export function tellControls(state, d, done = () => {}) {
  const act = (button, value) => busy(button, async () => {
    const sent = value();
    if (await tell(state, d, sent)) done(sent);
  });
  if (state.view.binary) {
    return h("span", { class: "tell" }, [["1", "success"], ["0", "failure"]].map(([value, name]) => {
      const button = h("button", { type: "button", "aria-label": `Tell ${name} for ${whom(d)}` }, name);
      button.addEventListener("click", act(button, () => Number(value)));
      return button;
    }));
  }
  const input = h("input", { type: "number", step: "any", required: true, "aria-label": `Outcome for ${whom(d)}` });
  const button = h("button", {}, "Tell");
  const form = h("form", { class: "tell" }, input, button);
  form.addEventListener("submit", act(button, () => Number(input.value)));
  return form;
}

// Correct, withdraw or void, each with a reason. Returns true where something was stored.
export async function correct(state, d, value) {
  const has = value !== null && value !== undefined;
  const way = h("select", { id: "way" },
    has && h("option", { value: "withdrawals" }, "withdraw: the outcome was told by mistake"),
    has && h("option", { value: "amendments" }, "correct it to another value"),
    h("option", { value: "void" }, "void: the decision was not carried out"));
  const next = state.view.binary ? h("select", { id: "next" }, [1, 0].map((v) => h("option", { value: v, selected: v !== value }, word(true, v))))
    : h("input", { id: "next", type: "number", step: "any" });
  const nextField = field("New value", next), reason = h("input", { id: "reason", required: true, maxlength: 500, autocomplete: "off", autofocus: true });
  const adapt = () => { nextField.hidden = way.value !== "amendments"; next.required = !nextField.hidden; };
  way.addEventListener("change", adapt);
  adapt();
  const wish = await ask(has ? "Undo or correct this outcome?" : "Void this decision?",
    [facts(d, has ? word(state.view.binary, value) : "none yet"), field("What to do", way), nextField, field("Reason", reason, "It is kept in the audit trail, with the old value.")],
    { yes: "Store the correction", danger: true, read: () => ({ way: way.value, next: Number(next.value), reason: reason.value.trim() }) });
  if (!wish) return false;
  const body = wish.way === "amendments" ? { reward: wish.next, reason: wish.reason } : { reason: wish.reason };
  await call(`${decisionAt(state.name, d.id)}/${wish.way}`, { method: "POST", body });
  toast({ withdrawals: `Withdrawn: ${whom(d)} waits for an outcome again.`, amendments: `Corrected to ${word(state.view.binary, wish.next)} for ${whom(d)}.`, void: `Voided: ${whom(d)} does not count.` }[wish.way]);
  return true;
}

export function correctButton(state, d, value, done, label = "Undo") {
  const button = h("button", { type: "button", class: "link", "aria-label": `${label} for ${whom(d)}` }, label);
  button.addEventListener("click", busy(button, async () => { if (await correct(state, d, value)) await done(); }));
  return button;
}
