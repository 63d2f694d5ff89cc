// @ts-check
/** <since-time><time datetime="2026-03-26T06:12:00Z">2 min ago</time></since-time>: keeps the words current. */

/** @type {Set<SinceTime>} */
const shown = new Set();
/** @type {[number, string][]} */
const UNITS = [[86_400, "d"], [3_600, "h"], [60, "min"], [1, "s"]];

/**
 * Return how long ago, or in how long, as calve.web.formats.since writes it.
 * @param {number} then
 * @param {number} now
 */
export function since(then, now) {
  const seconds = Math.floor(Math.abs(now - then) / 1000);
  const [unit, name] = UNITS.find(([size]) => seconds >= size) ?? [1, "s"];
  if (seconds < 1) return "now";
  const rough = `${Math.floor(seconds / unit)} ${name}`;
  return then <= now ? `${rough} ago` : `in ${rough}`;
}

class SinceTime extends HTMLElement {
  connectedCallback() {
    shown.add(this);
    this.refresh();
  }

  disconnectedCallback() {
    shown.delete(this);
  }

  refresh() {
    const time = this.querySelector("time");
    const then = Date.parse(this.getAttribute("datetime") ?? time?.getAttribute("datetime") ?? "");
    if (Number.isNaN(then)) return;
    const text = since(then, Date.now());
    const target = time ?? this;
    if (target.textContent !== text) target.textContent = text;
  }
}

customElements.define("since-time", SinceTime);
setInterval(() => { if (!document.hidden) for (const one of shown) one.refresh(); }, 1000);
document.addEventListener("visibilitychange", () => { for (const one of shown) one.refresh(); });
