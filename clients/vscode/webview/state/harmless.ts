/** Makes text from models and programs harmless to show, as the server does for terminals. */

const SEQUENCE =
   
  /\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)|\x1b[ -/]*[0-OQ-WYZ\\`-~]/g;

const CONTROL =
   
  /\r\n?|[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff]/gu;

/** The text without terminal sequences; other controls become `<U+0007>`. Line ends are `\n`. */
export function harmless(text: string): string {
  return text.replace(SEQUENCE, "").replace(CONTROL, shown);
}

function shown(found: string): string {
  if (found[0] === "\r") return "\n";
  const code = found.codePointAt(0) ?? 0;
  return `<U+${code.toString(16).toUpperCase().padStart(4, "0")}>`;
}

/** The text harmless, and on one line. */
export function oneLine(text: string): string {
  return harmless(text).split(/\s+/).filter(Boolean).join(" ");
}

/** Blank lines in a row, and white space in a line, that are shown as such. */
const BLANK = /\n(?:[^\S\n]*\n){4,}/g;
const WIDE = /[^\S\n]{40,}/g;

/** The text, where much white space is only counted: what stands behind it is not led out of sight. */
export function unpadded(text: string): string {
  const shorter = text.replace(WIDE, (found) => ` ⟨${found.length} spaces⟩ `);
  return shorter.replace(BLANK, (found) => `\n⟨${found.split("\n").length - 2} empty lines⟩\n`);
}
