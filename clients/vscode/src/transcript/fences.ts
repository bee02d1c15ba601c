/** What the words behind a fence say: ```python src/app.py, ```src/app.py, ```js title="a.js". */
export function namedFile(info: string): string | undefined {
  const words = info.trim().split(/\s+/).map((word) => word.replace(/^(?:title|file|path|filename)=/, "").replace(/^["']|["']$/g, ""));
  const [first = "", ...rest] = words;
  const behind = /^[\w+#-]+:(.+)$/.exec(first)?.[1];
  return [behind ?? first, ...rest].find((word) => /^[\w@.+-]+(?:\/[\w@.+-]+)*\.[A-Za-z]\w*$/.test(word));
}

/** Whether a block is an edit already: a diff, search and replace, a patch. */
export function isEdit(text: string, info: string): boolean {
  return /^(?:diff|patch)\b/.test(info.trim()) || /^(?:<{5,9} ?SEARCH|\*{3} Begin Patch|--- \S+\n\+{3} |diff --git )/m.test(text);
}
