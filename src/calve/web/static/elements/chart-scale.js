// @ts-check
/** How a <metric-chart> writes its numbers, and where the lines of its scales are. */

const MS = { s: 1_000, min: 60_000, h: 3_600_000, d: 86_400_000 };
/** @param {string} unit @param {number[]} counts */
const times = (unit, ...counts) => counts.map((count) => count * MS[/** @type {keyof MS} */ (unit)]);

/** Steps between two lines of a scale of durations. */
const DURATIONS = [1, 10, 100, ...times("s", 1, 5, 15, 30), ...times("min", 1, 5, 15, 30), ...times("h", 1, 3, 6, 12),
  ...times("d", 1, 2, 5, 10, 30, 90, 180, 365)];

/** Return a time in seconds as the pages write it, in UTC. @param {number} at */
export const moment = (at) => new Date(at * 1000).toISOString().slice(0, 16).replace("T", " ");
/** Return the hour, or the day at its beginning. @param {number} at */
export const clock = (at) => (at % 86_400 ? moment(at).slice(11) : moment(at).slice(5, 10));

/** Return a duration as calve.web.formats.duration writes it, to the second largest unit. @param {number} ms */
export function duration(ms) {
  const units = Object.entries(MS).reverse(), place = units.findIndex(([, size]) => ms >= size);
  if (place < 0) return ms ? `${Math.round(ms)} ms` : "0";
  const [name, size] = units[place], [part, smaller] = units[place + 1] ?? ["", Infinity];
  const rest = Math.floor((ms % size) / smaller);
  return `${Math.floor(ms / size)} ${name}${rest ? ` ${rest} ${part}` : ""}`;
}

/** @param {number} count */
function bytes(count) {
  const power = Math.min(5, Math.max(0, Math.floor(Math.log10(Math.abs(count) || 1) / 3)));
  return `${Number((count / 1000 ** power).toPrecision(3))} ${["B", "kB", "MB", "GB", "TB", "PB"][power]}`;
}

/** How the units of data-unit are written. @type {Record<string, (value: number) => string>} */
const WRITTEN = {
  ms: duration,
  s: (value) => duration(value * 1000),
  bytes,
  share: (value) => `${Number((value * 100).toPrecision(3))} %`,
  number: (value) => value.toLocaleString("en", { maximumFractionDigits: 2 }),
};

/** Return what writes the values of a unit. @param {string | undefined} unit */
export const written = (unit) => WRITTEN[unit ?? ""] ?? WRITTEN.number;

/** Return the steps that the scale of a unit may have; undefined: those of numbers. @param {string | undefined} unit */
export const steps = (unit) => (unit === "ms" ? DURATIONS : unit === "s" ? DURATIONS.map((step) => step / 1000) : undefined);

/** Return a range that begins at zero, unless values are below, and has room for the limit. @param {number | null} least @param {number | null} most @param {number} limit */
export function range(least, most, limit) {
  const top = Math.max(most ?? 0, limit * 1.1 || 0);
  return [Math.min(0, least ?? 0), top > 0 ? top * 1.05 : 1];
}
