// @ts-check
/**
 * <metric-chart time data-unit="ms" data-limit="432000000" data-limit-text="may be removed" height="220">
 *   <svg>…</svg> <table><caption>Lag</caption><thead><tr><th>time<th data-tone="late">orders</thead>
 *   <tbody><tr><td data-value="1774505520">06:12<td data-value="840000">14 min</table></metric-chart>
 * Draws a table as lines with uPlot, which is loaded when the first chart comes into view. The first column is x, in
 * seconds if the chart has the attribute time; data-unit (ms, s, bytes, share) is that of the others, which the pointer
 * shows as their cells write them. From data-limit on, the chart is marked. Without JavaScript, and for readers of
 * screens, the children stay: the table, and a picture by the server if there is one.
 */
import { options } from "./chart-plot.js";
import { part, shadow } from "./shadow.js";

const VENDOR = new URL("../vendor/", import.meta.url);
const CSS = `
  .chart { min-height: 120px } .failed + .hidden { all: unset }
  .u-legend { font-size: .75rem; color: var(--picture-text); text-align: left }
  .tip { position: absolute; z-index: 2; pointer-events: none; background: var(--picture-text); color: var(--picture-panel);
    padding: 4px 10px; border-radius: 6px; font-size: .75rem; white-space: pre; line-height: 1.5 }
  .tip:empty { display: none }
`;
const HTML = `<div class="chart" aria-hidden="true"></div><div class="hidden"><slot></slot></div><div class="tip" aria-hidden="true"></div>`;
/** @type {Promise<any> | undefined} */
let library;

/** Load uPlot, which is a script and not a module. @returns {Promise<any>} */
function uPlot() {
  library ??= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = new URL("uplot.iife.min.js", VENDOR).href;
    script.onload = () => resolve(/** @type {any} */ (window).uPlot);
    script.onerror = reject;
    document.head.append(script);
  });
  return library;
}

class MetricChart extends HTMLElement {
  root = shadow(this, CSS, HTML);
  chart = part(this.root, ".chart");
  tip = part(this.root, ".tip");
  probe = this.root.appendChild(document.createElement("i"));

  connectedCallback() {
    const style = document.createElement("link");
    style.rel = "stylesheet";
    style.href = new URL("uplot.min.css", VENDOR).href;
    if (!this.root.querySelector("link")) this.root.prepend(style);
    this.seen = new IntersectionObserver(([entry]) => { if (entry.isIntersecting) this.begin(); });
    this.seen.observe(this);
  }

  disconnectedCallback() {
    for (const one of [this.seen, this.watch, this.themed, this.resized]) one?.disconnect();
    this.plot?.destroy();
    this.plot = null;
  }

  async begin() {
    this.seen?.disconnect();
    try {
      this.library = await uPlot();
    } catch {
      return this.chart.classList.add("failed"); // then the children are shown
    }
    this.draw();
    this.watch = new MutationObserver(() => this.refresh());
    this.watch.observe(this, { attributes: true, childList: true, characterData: true, subtree: true });
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

  /** @returns {HTMLElement[]} */
  get heads() { return [...this.querySelectorAll("thead th")].map((one) => /** @type {HTMLElement} */ (one)); }

  /** Read the table: a list for each column. @returns {(number | null)[][]} */
  data() {
    this.rows = [...this.querySelectorAll("tbody tr")].map((row) => /** @type {HTMLElement[]} */ ([...row.children]));
    return this.heads.map((_, column) => (this.rows ?? []).map((row) => {
      const text = row[column]?.dataset.value ?? row[column]?.textContent?.replaceAll(",", "").trim() ?? "";
      return text === "" || Number.isNaN(Number(text)) ? null : Number(text);
    }));
  }

  /** Show other numbers of the same lines in the same chart: where the pointer is, and what is zoomed, stays. */
  refresh() {
    if (this.drawn === this.kind()) this.plot?.setData(this.data(), !this.isZoomed); else this.draw();
  }

  kind() { return JSON.stringify([{ ...this.dataset }, this.hasAttribute("time"), this.heads.map((head) => [head.textContent, head.dataset.tone])]); }

  get isZoomed() {
    const { scales: { x }, data: [at] } = this.plot;
    return x.min > at[0] || x.max < at[at.length - 1];
  }

  draw() {
    this.plot?.destroy();
    this.drawn = this.kind();
    const data = this.data();
    this.plot = new this.library({
      ...this.size(),
      ...options({
        heads: this.heads,
        isTime: this.hasAttribute("time"),
        isPoint: data[0]?.length === 1,
        colour: (name) => this.colour(name),
        point: () => this.point(),
        ...this.dataset,
      }),
      tzDate: (/** @type {number} */ at) => this.library.tzDate(new Date(at * 1000), "Etc/UTC"),
    }, data, this.chart);
  }

  /** Show the values at the pointer, as the cells of the table write them. */
  point() {
    const { idx = null, left = 0 } = this.plot?.cursor ?? {}, row = idx === null ? undefined : this.rows?.[idx];
    const lines = this.heads.map((head, column) => [head.textContent, row?.[column]?.textContent?.trim()]);
    this.tip.textContent = row && left >= 0 ? [lines[0][1], ...lines.slice(1).filter(([, text]) => text).map((one) => one.join(": "))].join("\n") : "";
    const right = this.chart.clientWidth - this.tip.offsetWidth, at = left + this.plot.over.offsetLeft;
    Object.assign(this.tip.style, { top: "8px", left: `${Math.max(0, at + 12 > right ? at - this.tip.offsetWidth - 12 : at + 12)}px` });
  }
}

customElements.define("metric-chart", MetricChart);
