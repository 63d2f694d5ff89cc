// @ts-check
/** What a <metric-chart> asks of uPlot: lines, axes, and the band from a limit on. */
import { clock, range, steps, written } from "./chart-scale.js";

const TONES = ["done", "run", "late", "ok", "bad", "wait"];
const DASHES = [[], [6, 3], [2, 3], [8, 3, 2, 3]];
const FONT = "11px Inter, system-ui, sans-serif";

/**
 * @typedef {object} Chart
 * @property {HTMLElement[]} heads of the columns, the first one of x
 * @property {boolean} isTime
 * @property {boolean} isPoint whether there is only one row
 * @property {string} [unit]
 * @property {string} [limit]
 * @property {string} [limitText]
 * @property {(name: string) => string} colour
 * @property {() => void} point is called when the pointer moves
 */

/** @param {Chart} chart @returns {Record<string, any>} */
export function options({ heads, isTime, isPoint, unit, limit, limitText = "", colour, point }) {
  const [first, ...others] = heads, write = written(unit), most = Number(limit);
  const line = { stroke: colour("--picture-line"), width: 1 };
  const axis = { stroke: colour("--picture-soft"), grid: line, ticks: line, font: FONT };
  const size = (/** @type {any} */ _, /** @type {string[] | null} */ texts) => 16 + 6.5 * Math.max(3, ...(texts ?? []).map((text) => text.length));
  return {
    series: [{ label: first?.textContent }, ...others.map((head, place) => ({
      label: head.textContent,
      stroke: colour(`--tone-${head.dataset.tone ?? TONES[place % TONES.length]}`),
      dash: DASHES[Math.floor(place / TONES.length) % DASHES.length],
      width: 2,
      points: { show: isPoint },
    }))],
    axes: [
      { ...axis, size: 30, ...(isTime && { values: all(clock) }) },
      { ...axis, size, values: all(write), ...(steps(unit) && { incrs: steps(unit) }) },
    ],
    scales: { x: { time: isTime }, y: { range: (/** @type {any} */ _, /** @type {number} */ low, /** @type {number} */ high) => range(low, high, most) } },
    legend: { live: false },
    cursor: { drag: { x: true, y: false } },
    hooks: {
      setCursor: [point],
      drawAxes: [(/** @type {any} */ plot) => { if (most) band(plot, most, limitText, colour("--tone-bad")); }],
    },
  };
}

/** @param {(value: number) => string} write */
const all = (write) => (/** @type {any} */ _, /** @type {number[]} */ values) => values.map(write);

/** Mark all that is beyond a limit. @param {any} plot @param {number} limit @param {string} text @param {string} colour */
function band(plot, limit, text, colour) {
  const { ctx: context, bbox: { left, top, width } } = plot, y = plot.valToPos(limit, "y", true);
  const ratio = devicePixelRatio;
  context.save();
  context.fillStyle = context.strokeStyle = colour;
  context.globalAlpha = 0.12;
  context.fillRect(left, top, width, Math.max(0, y - top));
  context.globalAlpha = 1;
  context.setLineDash([4 * ratio, 3 * ratio]);
  context.lineWidth = ratio;
  context.beginPath();
  context.moveTo(left, y);
  context.lineTo(left + width, y);
  context.stroke();
  context.font = FONT.replace("11px", `${11 * ratio}px`);
  context.textAlign = "left";
  context.textBaseline = "top";
  context.fillText(text, left + 6 * ratio, top + 4 * ratio);
  context.restore();
}
