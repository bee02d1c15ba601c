/** Colours of code. The languages that agents write most; others stay plain. */

import bash from "highlight.js/lib/languages/bash";
import c from "highlight.js/lib/languages/c";
import cpp from "highlight.js/lib/languages/cpp";
import csharp from "highlight.js/lib/languages/csharp";
import css from "highlight.js/lib/languages/css";
import diff from "highlight.js/lib/languages/diff";
import dockerfile from "highlight.js/lib/languages/dockerfile";
import go from "highlight.js/lib/languages/go";
import ini from "highlight.js/lib/languages/ini";
import java from "highlight.js/lib/languages/java";
import javascript from "highlight.js/lib/languages/javascript";
import json from "highlight.js/lib/languages/json";
import kotlin from "highlight.js/lib/languages/kotlin";
import lua from "highlight.js/lib/languages/lua";
import makefile from "highlight.js/lib/languages/makefile";
import markdown from "highlight.js/lib/languages/markdown";
import php from "highlight.js/lib/languages/php";
import python from "highlight.js/lib/languages/python";
import ruby from "highlight.js/lib/languages/ruby";
import rust from "highlight.js/lib/languages/rust";
import scala from "highlight.js/lib/languages/scala";
import shell from "highlight.js/lib/languages/shell";
import sql from "highlight.js/lib/languages/sql";
import swift from "highlight.js/lib/languages/swift";
import typescript from "highlight.js/lib/languages/typescript";
import xml from "highlight.js/lib/languages/xml";
import yaml from "highlight.js/lib/languages/yaml";
import { createLowlight } from "lowlight";
import { h } from "./dom";

const lowlight = createLowlight({
  bash, c, cpp, csharp, css, diff, dockerfile, go, ini, java, javascript, json, kotlin, lua, makefile, markdown, php,
  python, ruby, rust, scala, shell, sql, swift, typescript, xml, yaml,
});
lowlight.registerAlias({ javascript: ["jsx", "mjs", "cjs"], typescript: ["tsx", "mts"], ini: ["toml"], json: ["jsonc"] });

/** Characters of the longest block that gets colours. */
const LONGEST = 50_000;

interface Token {
  type: string;
  value?: string;
  properties?: { className?: string[] };
  children?: Token[];
}

/** Code with the colours of its language, as nodes. */
export function highlighted(code: string, language: string): Node[] {
  return tokensOf(code, language.toLowerCase())?.map(nodeOf) ?? [document.createTextNode(code)];
}

/** Lines of a file with the colours of its language, as the nodes of each; without ends of lines. What its name does
 * not say the language of stays plain. */
export function highlightedLines(lines: readonly string[], path: string): Node[][] {
  const tokens = tokensOf(lines.join("\n"), languageOf(path));
  if (!tokens) return lines.map((line) => [document.createTextNode(line)]);
  return linesOf(tokens).map((line) => line.map(nodeOf));
}

function tokensOf(code: string, language: string): Token[] | undefined {
  if (code.length > LONGEST || !lowlight.registered(language)) return undefined;
  return (lowlight.highlight(language, code) as unknown as Token).children ?? [];
}

/** The end of its name, or all of it: `py`, `makefile`. */
function languageOf(path: string): string {
  return path.slice(Math.max(path.lastIndexOf("/"), path.lastIndexOf(".")) + 1).toLowerCase();
}

/** Tokens as lines: one that goes on over an end of line is in each of its lines. */
function linesOf(tokens: readonly Token[]): Token[][] {
  const lines: Token[][] = [[]];
  const put = (token: Token) => lines[lines.length - 1]?.push(token);
  for (const token of tokens) {
    const parts = token.type === "text"
      ? (token.value ?? "").split("\n").map((value) => ({ type: "text", value }))
      : linesOf(token.children ?? []).map((children) => ({ ...token, children }));
    parts.forEach((part, at) => {
      if (at > 0) lines.push([]);
      put(part);
    });
  }
  return lines;
}

function nodeOf(token: Token): Node {
  if (token.type === "text") return document.createTextNode(token.value ?? "");
  return h("span", { class: (token.properties?.className ?? []).join(" ") }, ...(token.children ?? []).map(nodeOf));
}
