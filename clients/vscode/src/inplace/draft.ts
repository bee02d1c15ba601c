// The draft of a rewrite as a picture that stands below the dimmed text. Pure.
//
// An extension can put no lines of text between those of a document; an attachment of a decoration
// can hold a picture of any size. It lies over the lines below while the draft streams, a few
// seconds, and the document is not touched.

/** Lines of a draft that are shown: the last ones. */
const SHOWN = 30;
/** Characters of a line that are shown. */
const WIDE = 200;
/** Width of a character, in sizes of the font. */
const ASPECT = 0.62;

export interface Look {
  fontFamily: string;
  fontSize: number;
  lineHeight: number;
  tabSize: number;
  dark: boolean;
}

export interface Picture {
  /** An SVG document. */
  svg: string;
  width: number;
  height: number;
}

/** Draws the last lines of a draft. Empty text: nothing to draw yet. */
export function picture(text: string, look: Look): Picture | undefined {
  const all = text.replace(/\r?\n$/, "").split(/\r?\n/);
  if (text === "") return undefined;
  const lines = all.slice(-SHOWN).map((line) => shown(line, look.tabSize));
  const height = lines.length * look.lineHeight;
  const longest = Math.max(...lines.map((line) => line.length));
  const width = Math.ceil((longest + 2) * look.fontSize * ASPECT);
  const baseline = look.lineHeight - (look.lineHeight - look.fontSize * 0.8) / 2;
  const rows = lines.map((line, row) => {
    const y = (row * look.lineHeight + baseline).toFixed(1);
    return `<text x="0" y="${y}" xml:space="preserve">${escaped(line)}</text>`;
  });
  const style = [
    `font-family:${look.fontFamily.replaceAll('"', "'")}`,
    `font-size:${look.fontSize}px`,
    `fill:${look.dark ? "#d4d4d4" : "#1f1f1f"}`,
  ].join(";");
  const svg =
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}">` +
    `<g style="${escaped(style)}">${rows.join("")}</g></svg>`;
  return { svg, width, height };
}

/** What is said above a rewrite: what was asked, and how far it is. */
export function headline(instruction: string, text: string): string {
  const asked = instruction.replace(/\s+/g, " ").trim();
  const short = asked.length > 60 ? `${asked.slice(0, 59)}…` : asked;
  const lines = text === "" ? 0 : text.replace(/\n$/, "").split("\n").length;
  return lines === 0 ? short : `${short} (${lines} ${lines === 1 ? "line" : "lines"} so far)`;
}

function shown(line: string, tabSize: number): string {
  let found = "";
  for (const character of line.slice(0, WIDE)) {
    found += character === "\t" ? " ".repeat(tabSize - (found.length % tabSize)) : character;
  }
  return found;
}

function escaped(text: string): string {
  return text
    .replace(/&/g, "&amp;")
    .replace(/</g, "&lt;")
    .replace(/>/g, "&gt;")
    .replace(/"/g, "&quot;")
    // XML has no other control characters, not even escaped.
    .replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, "\u00b7");
}
