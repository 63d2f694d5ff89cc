// @ts-check
/**
 * <since-time><time datetime="2026-03-26T06:12:00Z">2 min ago</time></since-time>: keeps the words current.
 * With the attribute "clock": the whole of the time, in the reader's zone. Its title has the time in UTC too.
 */

/** @type {Set<SinceTime>} */
const shown = new Set();
/** @type {[number, string][]} */
const UNITS = [[86_400, "d"], [3_600, "h"], [60, "min"], [1, "s"]];

/** Swedish writes dates as ISO 8601 does. @param {string} [timeZone] */
const clock = (timeZone) => new Intl.DateTimeFormat("sv-SE", {
  year: "numeric", month: "2-digit", day: "2-digit", hour: "2-digit", minute: "2-digit", timeZoneName: "short", timeZone,
});
const here = clock(), utc = clock("UTC");

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
  watch = new MutationObserver(() => this.refresh()); // a live update writes what the server wrote

  connectedCallback() {
    shown.add(this);
    this.refresh();
    this.watch.observe(this, { attributes: true, characterData: true, childList: true, subtree: true });
  }

  disconnectedCallback() {
    shown.delete(this);
    this.watch.disconnect();
  }

  refresh() {
    const time = this.querySelector("time");
    const then = Date.parse(this.getAttribute("datetime") ?? time?.getAttribute("datetime") ?? "");
    if (Number.isNaN(then)) return;
    const own = here.format(then), common = utc.format(then), isClock = this.hasAttribute("clock");
    const text = isClock ? own : since(then, Date.now());
    const title = isClock || own === common ? common : `${own} · ${common}`;
    const target = time ?? this;
    if (target.textContent !== text) target.textContent = text;
    if (target.title !== title) target.title = title;
  }
}

customElements.define("since-time", SinceTime);
setInterval(() => { if (!document.hidden) for (const one of shown) one.refresh(); }, 1000);
document.addEventListener("visibilitychange", () => { for (const one of shown) one.refresh(); });
