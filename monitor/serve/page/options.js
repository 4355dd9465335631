// What is chosen in a view, kept in its address after a question mark.

let onChange = () => {};

/** Call `handler` when a choice has changed the address. */
export const onOptions = (handler) => {
  onChange = handler;
};

/** Return the address with some choices changed; null or "" drops one, a list repeats it. */
function withOptions(changes) {
  const [path, query = ""] = location.hash.split("?");
  const options = new URLSearchParams(query);
  for (const [key, value] of Object.entries(changes)) {
    options.delete(key);
    for (const one of [value].flat()) if (one !== null && one !== "" && one !== undefined) options.append(key, one);
  }
  return options.size ? `${path}?${options}` : path;
}

/** Return a choice in the address of this moment: the view may still show an earlier one. */
export const chosen = (key) => new URLSearchParams(location.hash.split("?")[1]).get(key);

/** Change some choices. Typing replaces the address, so that Back leaves the view and does not step through letters. */
export function choose(changes) {
  const next = withOptions(changes);
  if (next === location.hash) return;
  history.replaceState(null, "", next);
  onChange();
}
