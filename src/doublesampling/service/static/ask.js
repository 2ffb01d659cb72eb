// Ask for an arm by hand.

import { at, call } from "./api.js";
import { busy, fill, h, swatch, whom } from "./dom.js";
import { recordInputs } from "./fields.js";
import { correctButton, tellControls, word } from "./tell.js";

// Parse the numbers of a context; an empty field is not zero.
function numbers(text, wanted) {
  const parts = text.split(",").map((part) => part.trim());
  if (parts.length !== wanted || parts.some((part) => part === "" || !Number.isFinite(Number(part)))) {
    throw new Error(`Context: ${wanted} numbers separated by commas, got "${text}".`);
  }
  return parts.map(Number);
}

export function askCard(state) {
  const unit = h("input", { id: "unit", maxlength: 500, autocomplete: "off", placeholder: "optional, such as patient-17" });
  const context = h("input", { id: "context", autocomplete: "off", placeholder: "0.5, 1" });
  const contextField = h("div", { class: "field" }, h("label", { for: "context" }, "Context"), context);
  const recordField = h("div", { class: "record" });
  let record = null; // the controls of a record, made when the experiment is known
  const button = h("button", { class: "primary" }, "Ask for an arm");
  const answer = h("div", { class: "answer", role: "status", "aria-live": "polite" });
  const paused = h("p", { class: "dim" });
  const form = h("form", {}, h("div", { class: "field" }, h("label", { for: "unit" }, "Unit"), unit), contextField, recordField, button, paused);

  function show(made) {
    const below = h("div", {});
    const told = (value) => {
      fill(below, h("p", { class: "dim" }, `Outcome stored: ${word(state.view.binary, value)}. `,
        state.me.can("amend") && correctButton(state, made, value, async () => { fill(below, h("p", { class: "dim" }, "Corrected.")); await state.refresh(); })));
      state.refresh();
    };
    if (state.me.can("tell")) fill(below, tellControls(state, made, told));
    fill(answer, h("p", {}, made.repeated ? `${whom(made)} already has an arm:` : `${whom(made)} gets`),
      h("p", { class: "big", id: "asked-arm" }, swatch(made.arm), made.arm_name),
      h("p", { class: "dim" }, made.arm_code && `Code ${made.arm_code}. `, "Decision id ", h("code", { id: "asked-id" }, made.id)), below);
  }

  form.addEventListener("submit", busy(button, async () => {
    fill(answer); // remove an earlier answer before an error is shown
    const body = {};
    if (unit.value.trim()) body.unit = unit.value.trim();
    if (record) body.context = record.read();
    else if (state.view.dimension) body.context = numbers(context.value, state.view.dimension);
    const headers = { "Idempotency-Key": crypto.randomUUID?.() ?? `${Date.now()}-${Math.random()}` };
    show(await call(`${at(state.name)}/decisions`, { method: "POST", body, headers }));
    unit.value = "";
    record?.clear();
    await state.refresh();
  }));

  return {
    element: h("section", { class: "card", "aria-label": "Ask" }, h("h2", {}, "Ask"), form, answer),
    update: () => {
      if (state.view.features && !record) {
        record = recordInputs(state.view.features, "context");
        fill(recordField, record.elements);
      }
      contextField.hidden = !state.view.dimension || !!record;
      context.required = !contextField.hidden;
      button.disabled = state.view.status !== "running";
      paused.textContent = { paused: "Paused: no new decisions. Outcomes can still be told.", stopped: "Stopped by its stopping rule: no new decisions. Outcomes can still be told." }[state.view.status] ?? "";
    },
  };
}
