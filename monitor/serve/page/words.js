// The words of the server, which writes them here: heads of columns, names of procedures, and the sentences about verdicts.

import { count } from "./format.js";

export const WORDS = {};

/** Fill a sentence of monitor/words/page_templates.py in: a number `n` chooses its form. Returns a text, or a list if a value is an element. */
export function phrase(key, values = {}) {
  const [one, many = one] = [WORDS.templates[key]].flat();
  const parts = (values.n === 1 ? one : many).split(/[{}]/).map((part, k) => (k % 2 ? values[part] : part)).map((part) => (typeof part === "number" ? count(part) : part));
  return parts.some((part) => typeof part === "object") ? parts : parts.join("");
}
