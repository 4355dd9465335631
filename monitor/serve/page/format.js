// Format numbers for people.

/** Compare names as people order them: "model-200" before "model-1000". */
export const byName = new Intl.Collator("en", { numeric: true }).compare;

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const MISSING = "–";

export const count = (n) => (n === null || n === undefined ? MISSING : whole.format(n));

export function fixed(x, digits) {
  if (x === null || x === undefined) return MISSING;
  const text = Math.abs(x).toFixed(digits);
  return x < 0 && Number(text) !== 0 ? `−${text}` : text;
}

/** Format an amount in the currency of the prices. */
export function money(amount) {
  if (amount >= 1 || !amount) return amount.toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 });
  return String(Number(amount.toPrecision(3)));
}

const NOISE = 5e-10;
const OPEN = 1e-300;

/** Format a difference of scores in points, with its sign: one that is not 0 has as many digits as its first one needs (monitor/view/points.py). */
export function points(gap, digits = 2) {
  if (gap === null || gap === undefined) return MISSING;
  if (gap !== 0 && Math.abs(gap) < OPEN) return gap > 0 ? "> 0" : "< 0";
  const size = Math.abs(100 * gap);
  if (size < NOISE) return fixed(0, digits);
  const text = size.toFixed(digits);
  return `${gap < 0 ? "−" : "+"}${Number(text) ? text : size.toFixed(Math.max(digits, -Math.floor(Math.log10(size))))}`;
}

export const range = (low, high, digits = 2) =>
  low === null || high === null ? MISSING : `${points(low, digits)} to ${points(high, digits)}`;

/** Format a mean score as a percentage. */
export const percent = (mean, digits = 2) => (mean === null ? MISSING : fixed(100 * mean, digits));

/** Format coverage; it never rounds up to 100 %. */
export function share(part, digits = 1) {
  if (part >= 1) return "100 %";
  return `${(Math.floor(100 * 10 ** digits * part) / 10 ** digits).toFixed(digits)} %`;
}

/** Format a resolution ratio; it never rounds up to 1. */
export function ratio(q) {
  if (q === null) return MISSING;
  if (q > 0.99 && q < 1) return "0.99";
  return fixed(q, q >= 10 ? 1 : 2);
}

/** Format a probability from its natural logarithm with two digits and some more. */
export function small(logP, extra = 0) {
  const text = Math.exp(logP).toPrecision(2 + extra);
  if (Number(text) >= 0.001) return text;
  return power(logP, 1 + extra);
}

function power(log, digits) {
  const exponent = Math.floor(log / Math.LN10);
  const leading = Math.exp(log - exponent * Math.LN10).toFixed(digits);
  return Number(leading) >= 10 ? `${(1).toFixed(digits)} × 10${superscript(exponent + 1)}` : `${leading} × 10${superscript(exponent)}`;
}

const ROUNDING = 1e-11;

/**
 * Format a number and its thresholds with the digits that show which of them is the smaller one (`apart` in monitor/render/numbers.py).
 *
 * form(x, more) rounds x to so many digits more than usual. A number that differs from a threshold by rounding alone is equal to it.
 */
export function apart(form, x, ...limits) {
  const differs = (limit) => Math.abs(x - limit) > ROUNDING * Math.max(1, Math.abs(limit));
  const others = limits.filter((limit) => limit !== null && differs(limit));
  let extra = 0;
  while (extra < 12 && others.some((limit) => form(x, extra) === form(limit, extra))) extra += 1;
  return [x, ...limits].map((each) => (each === null ? MISSING : form(each, extra)));
}

export const superscript = (n) => String(n).replace(/[-\d]/g, (d) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[d] ?? "⁻");

/** Format an e-value from its natural logarithm: in full up to a million, then as a power of ten; with some digits more than usual. */
export function evalue(logE, extra = 0) {
  if (logE === null) return MISSING;
  const tens = logE / Math.LN10;
  if (tens >= 6 || tens <= -3) return extra ? power(logE, extra) : `10${superscript(tens > 0 ? Math.floor(tens) : Math.ceil(tens))}`;
  const e = Math.exp(logE);
  return e >= 10 ? e.toLocaleString("en", { maximumFractionDigits: extra }) : e.toPrecision(2 + extra);
}

/** Format an estimate of items, rounded to two digits at most, as `two_digits` of the words does. */
function estimate(items) {
  if (items >= 1e6) return "> 1 million";
  const step = 10 ** Math.max(0, Math.floor(Math.log10(Math.max(items, 1))) - 1);
  return count(step > 1 ? Math.round(items / step) * step : Math.max(1, Math.ceil(items)));
}

/** Format the same in a sentence. */
export const more = (items) => (items >= 1e6 ? "more than a million" : `about ${estimate(items)}`);

export const plural = (n, one, many = `${one}s`) => `${count(n)} ${n === 1 ? one : many}`;

export const ranks = (low, high) => (low === high ? count(low) : `${count(low)}–${count(high)}`);

/** Isolate the text direction of a name where no markup is possible. */
export const isolated = (name) => `\u2068${name}\u2069`;
