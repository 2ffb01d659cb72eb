// Elements without HTML text: whatever a unit or an arm is called, it is shown and never run.

export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") Object.assign(element.style, value);
    else if (name === "value") element.value = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(9).filter((c) => c !== null && c !== undefined && c !== false));
  return element;
}

export function fill(element, ...children) {
  element.replaceChildren(...children.flat(9).filter((c) => c !== null && c !== undefined && c !== false));
  return element;
}

let hiding;
export function toast(text, bad = false) {
  const place = document.getElementById("toast");
  place.textContent = text;
  place.className = bad ? "shown bad" : "shown";
  clearTimeout(hiding);
  hiding = setTimeout(() => { place.className = ""; }, bad ? 8000 : 3500);
}

// Run a button's work: it cannot be pressed twice, and what fails is said.
export function busy(button, work) {
  return async (event) => {
    event?.preventDefault();
    if (button.disabled) return;
    button.disabled = true;
    try { await work(event); } catch (error) { toast(error.message, true); } finally { button.disabled = false; }
  };
}

export const percent = (x, digits = 1) => (x === null || x === undefined ? "–" : `${(100 * x).toFixed(digits)} %`);
export const number = (x, digits = 3) => {
  if (x === null || x === undefined) return "–";
  const size = Math.abs(x);
  return size !== 0 && (size < 0.001 || size >= 1e5) ? x.toExponential(2) : x.toFixed(digits);
};
export const count = (x) => (x === null || x === undefined ? "–" : x.toLocaleString("en"));
export const clock = (iso) => new Date(iso).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });

export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 1) return "< 1 s";
  for (const [size, unit] of [[86400, "d"], [3600, "h"], [60, "min"]]) {
    if (seconds >= size) return `${(seconds / size).toFixed(seconds < 10 * size ? 1 : 0)} ${unit}`;
  }
  return `${seconds.toFixed(0)} s`;
}
export const age = (iso) => duration((Date.now() - new Date(iso)) / 1000);
export const COLOURS = 8;
export const swatch = (arm) => h("span", { class: `swatch c${arm % COLOURS}`, "aria-hidden": "true" });
