// @ts-check
/**
 * <metric-chart height="220"><table><caption>Lag</caption><thead><tr><th>time<th data-tone="late">orders</thead>
 *   <tbody><tr><td data-value="1774505520">06:12<td>14</table></metric-chart>
 * Draws a table as lines with uPlot, which is loaded when the first chart comes into view. With the attribute
 * time, the first column is in seconds; with time="xy", all are. What is below a column with data-band is filled. The children
 * stay for readers of screens and without JavaScript: the table, or a picture beside a hidden one.
 */
import { part, shadow } from "./shadow.js";

const VENDOR = new URL("../vendor/", import.meta.url);
const TONES = ["done", "run", "late", "ok", "bad", "wait"];
const DASHES = [[], [6, 3], [2, 3], [8, 3, 2, 3]];
const CSS = `.chart { min-height: 120px } .failed + .hidden { all: unset }`;
const HTML = `<div class="chart" aria-hidden="true"></div><div class="hidden"><slot></slot></div>`;
/** @type {Promise<[any, CSSStyleSheet]> | undefined} */
let library;

/** Load uPlot, which is a script and not a module, and its style. @returns {Promise<[any, CSSStyleSheet]>} */
function uPlot() {
  library ??= Promise.all([plots(), sheet()]);
  return library;
}

/** @returns {Promise<any>} */
function plots() {
  return new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = new URL("uplot.iife.min.js", VENDOR).href;
    script.onload = () => resolve(/** @type {any} */ (window).uPlot);
    script.onerror = reject;
    document.head.append(script);
  });
}

async function sheet() {
  const answer = await fetch(new URL("uplot.min.css", VENDOR));
  return new CSSStyleSheet().replace(await answer.text());
}

/** Return a time in seconds as the pages write it, in UTC. @param {number} at */
const moment = (at) => new Date(at * 1000).toISOString().slice(0, 16).replace("T", " ");
/** Return the hour, or the day at its beginning. @param {number} at */
const clock = (at) => (at % 86_400 ? moment(at).slice(11) : moment(at).slice(5, 10));

class MetricChart extends HTMLElement {
  root = shadow(this, CSS, HTML);
  chart = part(this.root, ".chart");
  probe = this.root.appendChild(document.createElement("i"));

  connectedCallback() {
    this.seen = new IntersectionObserver(([entry]) => { if (entry.isIntersecting) this.begin(); });
    this.seen.observe(this);
  }

  disconnectedCallback() {
    for (const one of [this.seen, this.watch, this.themed, this.resized]) one?.disconnect();
    this.plot?.destroy();
  }

  async begin() {
    this.seen?.disconnect();
    try {
      const [library, sheet] = await uPlot();
      this.library = library;
      if (!this.root.adoptedStyleSheets.includes(sheet)) this.root.adoptedStyleSheets.push(sheet);
    } catch {
      return this.chart.classList.add("failed"); // then the table is shown
    }
    this.draw();
    this.watch = new MutationObserver(() => this.draw());
    this.watch.observe(this, { childList: true, characterData: true, subtree: true });
    this.themed = new MutationObserver(() => this.draw());
    this.themed.observe(document.documentElement, { attributes: true });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { if (this.isConnected) this.draw(); });
    this.resized = new ResizeObserver(() => this.plot?.setSize(this.size()));
    this.resized.observe(this);
  }

  size() {
    return { width: this.clientWidth || 300, height: Number(this.getAttribute("height") ?? 220) };
  }

  /** @param {string} name */
  colour(name) {
    this.probe.style.color = `var(${name})`;
    return getComputedStyle(this.probe).color;
  }

  /** Read the table: a list for each column. @returns {(number | null)[][]} */
  data() {
    const rows = [...this.querySelectorAll("tbody tr")].map((row) => [...row.children].map((cell) => {
      const text = /** @type {HTMLElement} */ (cell).dataset.value ?? cell.textContent?.replaceAll(",", "").trim() ?? "";
      return text === "" || Number.isNaN(Number(text)) ? null : Number(text);
    }));
    return [...this.querySelectorAll("thead th")].map((_, column) => rows.map((row) => row[column] ?? null));
  }

  draw() {
    const [first, ...others] = /** @type {HTMLElement[]} */ ([...this.querySelectorAll("thead th")]);
    const soft = this.colour("--picture-soft"), line = { stroke: this.colour("--picture-line"), width: 1 };
    const axis = { stroke: soft, grid: line, ticks: line, font: "11px Inter, system-ui, sans-serif" };
    const time = this.hasAttribute("time"), isAll = this.getAttribute("time") === "xy";
    const clocks = { ...axis, values: (/** @type {any} */ _, /** @type {number[]} */ ticks) => ticks.map(clock) };
    /** @param {boolean} isTime @returns {(plot: any, at: number | null) => string | number} */
    const value = (isTime) => (_, at) => (at === null || !isTime ? at ?? "" : moment(at));
    const own = others.filter((head) => !head.dataset.tone);
    const series = others.map((head) => ({
      label: head.textContent,
      value: value(isAll),
      stroke: this.colour(`--tone-${head.dataset.tone ?? TONES[own.indexOf(head) % TONES.length]}`),
      dash: head.dataset.tone ? [] : DASHES[own.indexOf(head) % DASHES.length],
      width: "band" in head.dataset ? 0 : 2,
      ...("band" in head.dataset ? { fill: this.colour("--picture-band"), fillTo: (/** @type {any} */ plot) => plot.scales.y.min } : {}),
      spanGaps: true,
      points: { show: false },
    }));
    this.plot?.destroy();
    this.plot = new this.library({
      ...this.size(),
      series: [{ label: first?.textContent, value: value(time) }, ...series],
      axes: [time ? clocks : axis, isAll ? clocks : axis],
      scales: { x: { time }, y: { time: isAll } },
      tzDate: (/** @type {number} */ at) => this.library.tzDate(new Date(at * 1000), "Etc/UTC"),
      cursor: { drag: { x: true, y: false } },
    }, this.data(), this.chart);
  }
}

customElements.define("metric-chart", MetricChart);
