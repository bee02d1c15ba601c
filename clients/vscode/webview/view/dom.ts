/** Makes elements. Text only ever becomes text nodes: nothing here parses HTML. */

export type Child = Node | string | undefined | false;

type Listener = (event: never) => void;
export type Props = Record<string, string | number | boolean | undefined | Listener>;

/** An element with attributes (listeners begin with `on`) and children. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  props: Props = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name.slice(2), value as EventListener);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  append(element, children);
  return element;
}

export function append(element: Element, children: readonly Child[]): void {
  for (const child of children) if (child !== undefined && child !== false && child !== "") element.append(child);
}

/** Replaces what is in an element. */
export function fill(element: Element, ...children: Child[]): void {
  element.replaceChildren();
  append(element, children);
}

/** An icon of VS Code's, which says nothing to those who listen. */
export function icon(name: string, extra = ""): HTMLElement {
  return h("span", { class: `codicon codicon-${name} ${extra}`.trim(), "aria-hidden": "true" });
}

/** A button that shows only an icon, with its name as label and tooltip. */
export function iconButton(name: string, label: string, run: (event: MouseEvent) => void, extra = ""): HTMLButtonElement {
  return h(
    "button",
    { type: "button", class: `icon-button ${extra}`.trim(), "aria-label": label, title: label, onclick: run },
    icon(name),
  );
}

export function button(label: string, run: (event: MouseEvent) => void, extra = ""): HTMLButtonElement {
  return h("button", { type: "button", class: `button ${extra}`.trim(), onclick: run }, label);
}

let ids = 0;

/** An id that no other element has. */
export function newId(what: string): string {
  ids += 1;
  return `${what}-${ids}`;
}
