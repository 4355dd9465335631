// Draw a part of the page as an SVG picture that needs no page: every text, line and colour as it is on the screen, with a caption below.

import { s } from "./dom.js";

const STYLES = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "stroke-linecap", "opacity", "font-family", "font-size", "font-weight", "text-anchor"];
const MARGIN = 16;
const [HEADING, CAPTION] = [15, 11]; // sizes of the words above and below
const LEADING = 1.5;
export const FORBIDDEN = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g; // in XML
const RULE = /^(.+\)) 0px -([\d.]+)px 0px 0px inset$/; // the blue line below a row of the board
const MOST_PIXELS = 16_000; // a side of a canvas

const clear = (colour) => colour === "transparent" || /, 0\)$/.test(colour);
const seen = (style) => style.display !== "none" && style.visibility !== "hidden";

/** Return a copy of an SVG element with the styles of the page written into it. */
function styled(source) {
  const style = getComputedStyle(source);
  if (!seen(style)) return null;
  const copy = source.cloneNode(false);
  for (const name of ["class", "style", "id", "aria-labelledby", "tabindex"]) copy.removeAttribute(name);
  for (const name of STYLES) copy.setAttribute(name, style.getPropertyValue(name));
  for (const child of source.childNodes) {
    const drawn = child.nodeType === Node.TEXT_NODE ? child.cloneNode() : child instanceof SVGElement && styled(child);
    if (drawn) copy.append(drawn);
  }
  return copy;
}

/** Draw the words of a text node, one element a line. */
function texts(node, style, at) {
  const range = document.createRange();
  if (style.writingMode !== "horizontal-tb") return upright(node, range, style, at);
  const lines = [];
  for (const { 0: word, index } of node.data.matchAll(/[^\s-]+[\s-]*|[\s-]+/g)) {
    range.setStart(node, index);
    range.setEnd(node, index + word.trimEnd().length);
    const box = range.getBoundingClientRect();
    if (!box.width) continue;
    const last = lines.at(-1);
    if (last && Math.abs(last.top - box.top) < 2) Object.assign(last, { words: last.words + word, left: Math.min(last.left, box.left), right: Math.max(last.right, box.right) });
    else lines.push({ words: word, top: box.top, left: box.left, right: box.right, height: box.height });
  }
  const size = parseFloat(style.fontSize);
  return lines.map(({ words, top, left, right, height }) => s("text", {
    x: at.x(left), y: at.y(top + height / 2) + 0.35 * size, textLength: right - left, lengthAdjust: "spacingAndGlyphs", fill: style.color,
    "font-size": size, "font-weight": style.fontWeight, "font-family": style.fontFamily,
  }, words.trimEnd().replace(FORBIDDEN, "")));
}

/** Draw words that run upwards, as the heads of narrow columns do. */
function upright(node, range, style, at) {
  range.selectNodeContents(node);
  const { left, bottom, width, height } = range.getBoundingClientRect();
  return [s("text", {
    transform: `translate(${at.x(left + width / 2) + 0.35 * parseFloat(style.fontSize)} ${at.y(bottom)}) rotate(-90)`, textLength: height, lengthAdjust: "spacingAndGlyphs",
    fill: style.color, "font-size": style.fontSize, "font-weight": style.fontWeight, "font-family": style.fontFamily,
  }, node.data.replace(FORBIDDEN, ""))];
}

/** Draw background and borders of an element. */
function box(style, rect, at) {
  const marks = [];
  const area = { x: at.x(rect.left), y: at.y(rect.top), width: rect.width, height: rect.height };
  if (!clear(style.backgroundColor)) marks.push(s("rect", { ...area, rx: parseFloat(style.borderTopLeftRadius) || null, fill: style.backgroundColor }));
  const sides = { Top: ["left", "top", "right", "top"], Bottom: ["left", "bottom", "right", "bottom"], Left: ["left", "top", "left", "bottom"], Right: ["right", "top", "right", "bottom"] };
  for (const [side, [x1, y1, x2, y2]] of Object.entries(sides)) {
    const width = parseFloat(style[`border${side}Width`]);
    if (width && style[`border${side}Style`] !== "none" && !clear(style[`border${side}Color`])) {
      marks.push(s("line", { x1: at.x(rect[x1]), y1: at.y(rect[y1]), x2: at.x(rect[x2]), y2: at.y(rect[y2]), stroke: style[`border${side}Color`], "stroke-width": width, "stroke-dasharray": style[`border${side}Style`] === "dashed" ? "4 3" : null }));
    }
  }
  const [, colour, thickness] = RULE.exec(style.boxShadow) ?? [];
  if (colour) marks.push(s("rect", { ...area, y: area.y + rect.height - thickness, height: thickness, fill: colour }));
  return marks;
}

function draw(node, at) {
  if (node.nodeType === Node.TEXT_NODE) return texts(node, getComputedStyle(node.parentElement), at);
  if (node.nodeType !== Node.ELEMENT_NODE || node.matches(".sr, select, input, button, noscript")) return [];
  const style = getComputedStyle(node);
  const rect = node.getBoundingClientRect();
  if (!seen(style) || (!rect.width && !rect.height)) return [];
  const area = { x: at.x(rect.left), y: at.y(rect.top), width: rect.width, height: rect.height };
  if (node instanceof SVGSVGElement) {
    const copy = styled(node);
    for (const [name, value] of Object.entries({ ...area, overflow: style.overflow })) copy.setAttribute(name, value);
    return [copy];
  }
  if (node instanceof HTMLCanvasElement) return [s("image", { ...area, href: node.toDataURL() })];
  // A name that is too long for its column ends there.
  const clipped = style.overflowX !== "visible" && (node.scrollWidth > node.clientWidth + 1 || node.scrollHeight > node.clientHeight + 1);
  const inside = clipped ? { x: (x) => x - rect.left, y: (y) => y - rect.top } : at;
  const children = [...node.childNodes].flatMap((child) => draw(child, inside));
  return [...box(style, rect, at), ...(clipped ? [s("svg", { ...area, overflow: "hidden" }, children)] : children)];
}

/** Break words into lines that fit into a width. */
function broken(text, font, width) {
  const pen = document.createElement("canvas").getContext("2d");
  pen.font = font;
  const lines = [""];
  for (const word of text.replace(FORBIDDEN, "").split(" ")) {
    const longer = lines.at(-1) ? `${lines.at(-1)} ${word}` : word;
    if (pen.measureText(longer).width <= width || !lines.at(-1)) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines;
}

/** Return the picture of an element as the text of an SVG file, with its width and height. */
export function picture(element, heading, caption) {
  const rect = element.getBoundingClientRect();
  const page = getComputedStyle(document.body);
  const block = (text, size, weight) => ({ size, weight, lines: broken(text, `${weight} ${size}px ${page.fontFamily}`, rect.width) });
  const [above, below] = [block(heading, HEADING, 650), block(caption, CAPTION, 400)];
  const room = ({ lines, size }) => lines.length * size * LEADING + MARGIN / 2;
  const [width, height] = [Math.ceil(rect.width + 2 * MARGIN), Math.ceil(rect.height + 2 * MARGIN + room(above) + room(below))];
  const at = { x: (x) => x - rect.left + MARGIN, y: (y) => y - rect.top + MARGIN + room(above) };
  const words = ({ lines, size, weight }, top) => lines.map((line, k) =>
    s("text", { x: MARGIN, y: top + (k + 0.75) * size * LEADING, fill: page.color, "font-family": page.fontFamily, "font-size": size, "font-weight": weight }, line));
  const svg = s("svg", { width, height, viewBox: `0 0 ${width} ${height}` },
    s("title", {}, heading.replace(FORBIDDEN, "")), s("rect", { width, height, fill: page.backgroundColor }),
    words(above, MARGIN), draw(element, at), words(below, height - MARGIN - room(below) + MARGIN / 2));
  return { text: new XMLSerializer().serializeToString(svg), width, height };
}

/** Turn a picture into a PNG file of two pixels a point, or of fewer where it would be too large. */
export async function png({ text, width, height }) {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  await image.decode();
  const scale = Math.min(2, MOST_PIXELS / Math.max(width, height));
  const canvas = Object.assign(document.createElement("canvas"), { width: width * scale, height: height * scale });
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((done) => canvas.toBlob(done, "image/png"));
}
