// Records as contexts: one control per field of the experiment's features.

import { field, h } from "./dom.js";

// Return the controls of a record, and a function that reads it; `prefix` makes the ids unique on the page.
export function recordInputs(features, prefix, values = null) {
  const controls = features.map((feature) => ({ feature, control: control(feature, `${prefix}-${feature.name}`, values?.[feature.name]) }));
  return {
    elements: controls.map(({ feature, control: c }) => listed(feature, c, field(feature.name, c, hint(feature)))),
    read: () => Object.fromEntries(controls.map(({ feature, control: c }) => [feature.name, read(feature, c)])),
    clear: () => controls.forEach(({ control: c }) => { c.value = ""; }),
  };
}

// A context in one line: numbers, or the fields of a record.
export function contextText(context) {
  const shown = (value) => (typeof value === "number" ? `${+value.toFixed(3)}` : value === true ? "yes" : value === false ? "no" : `${value}`);
  return Array.isArray(context) ? context.map(shown).join(", ") : Object.entries(context).map(([name, value]) => `${name} ${shown(value)}`).join(", ");
}

const hint = (feature) => (feature.kind === "range" ? `${feature.low} to ${feature.high}` : null);

// Offer the known categories where others may be typed too.
function listed(feature, c, element) {
  if (feature.kind === "category" && feature.open) element.append(h("datalist", { id: `${c.id}-list` }, feature.categories.map((each) => h("option", { value: `${each}` }))));
  return element;
}

function control(feature, id, value) {
  const shown = value === undefined || value === null ? "" : value;
  if (feature.kind === "category" && feature.open) { // other categories may be typed
    return h("input", { id, required: true, autocomplete: "off", list: `${id}-list`, value: shown, "data-field": feature.name });
  }
  if (feature.kind === "category" || feature.kind === "boolean") {
    const options = feature.kind === "boolean" ? [["true", "yes"], ["false", "no"]] : feature.categories.map((each) => [`${each}`, `${each}`]);
    return h("select", { id, required: true, "data-field": feature.name }, h("option", { value: "" }, ""),
      options.map(([key, word]) => h("option", { value: key, selected: `${shown}` === key }, word)));
  }
  const number = typeof shown === "number" ? +shown.toFixed(4) : shown;
  return h("input", { id, type: "number", step: "any", required: true, min: feature.low, max: feature.high, value: number, "data-field": feature.name });
}

function read(feature, c) {
  const text = c.value.trim();
  if (text === "") throw new Error(`${feature.name} is missing.`); // an empty field is not zero
  if (feature.kind === "boolean") return text === "true";
  if (feature.kind === "category") return feature.categories.find((each) => `${each}` === text) ?? text;
  return Number(text);
}

// Read the features of a new experiment from lines such as "age: standard 60 10", "site: a, b, c", "dose: 0 to 40".
export function parseFeatures(text) {
  const fields = text.split("\n").map((line) => line.trim()).filter(Boolean).map((line) => {
    const place = line.indexOf(":"), name = line.slice(0, place).trim(), about = line.slice(place + 1).trim();
    if (place < 1 || !about) throw new Error(`Features: write each line as name: kind, got "${line}".`);
    const standard = about.match(/^standard\s+(\S+)\s+(\S+)$/), range = about.match(/^(\S+)\s+to\s+(\S+)$/);
    if (standard) return { name, kind: "standard", mean: Number(standard[1]), deviation: Number(standard[2]) };
    if (range) return { name, kind: "range", low: Number(range[1]), high: Number(range[2]) };
    if (about.includes(",")) return { name, kind: "category", categories: about.split(",").map((each) => each.trim()).filter(Boolean) };
    return { name, kind: about };
  });
  return { fields, intercept: true };
}
