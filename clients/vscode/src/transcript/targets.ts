/** A place in a file as models write it: `src/app.py:12`, `app.py#L3-L9`, `file:///...`. */
export interface Place {
  path: string;
  /** From 1. */
  line?: number;
}

/**
 * What a link of a model's means: a web page, a file, or nothing that is opened. `command:` and all
 * schemes but these are refused.
 */
export function meant(href: string): { web: string } | Place | undefined {
  if (/^(?:https?|mailto):/i.test(href)) return { web: href };
  const [, address = "", line] = /^(.*?)(?:(?:#L|:)(\d+)(?:[:-]L?\d+)?)?$/s.exec(href) ?? [];
  if (/^file:\/\//i.test(address)) {
    try {
      return placed(decodeURIComponent(new URL(address).pathname), line);
    } catch {
      return undefined;
    }
  }
  if (/^[a-z][a-z0-9+.-]+:/i.test(address) || address === "" || address.startsWith("//")) return undefined;
  try {
    return placed(decodeURIComponent(address), line);
  } catch {
    return placed(address, line);
  }
}

function placed(path: string, line: string | undefined): Place {
  return line === undefined ? { path } : { path, line: Number(line) };
}
