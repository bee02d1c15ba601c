/** Going back to before a message: what it would change is shown before it is done. */

import type { Preview } from "../../src/transcript/messages";
import { oneLine } from "../state/harmless";
import { diff } from "../view/code";
import { button, fill, h, icon, newId } from "../view/dom";
import type { Shown } from "../view/shown";

export interface Wanted {
  turnId: string;
  /** The prompt will be sent again in other words. */
  again: boolean;
}

/** The card above the input that previews it. */
export class RestoreCard {
  readonly element = h("div", { class: "card restore", hidden: true });
  private wanted: Wanted | undefined;
  private files = true;

  constructor(
    private readonly shown: Shown,
    private readonly closed: () => void,
  ) {
    this.element.addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.close();
    });
  }

  /** Which turn would be gone back to, and whether files go back; undefined: none. */
  get choice(): { turnId: string; files: boolean; again: boolean } | undefined {
    return this.wanted && { ...this.wanted, files: this.files };
  }

  ask(wanted: Wanted): void {
    this.wanted = wanted;
    this.files = true;
    this.shown.post({ type: "preview", turnId: wanted.turnId });
    this.element.hidden = false;
    fill(this.element, h("div", { role: "status" }, "Looking what would change…"));
  }

  close(): void {
    if (!this.wanted) return;
    this.wanted = undefined;
    this.element.hidden = true;
    this.closed();
  }

  /** The server's preview, or why there is none. */
  arrived(turnId: string, preview: Preview | undefined, message: string | undefined): void {
    const wanted = this.wanted;
    if (wanted?.turnId !== turnId) return;
    if (!preview) {
      fill(this.element, h("div", { role: "alert" }, message ?? "This cannot be undone."), this.cancel("Close"));
      return;
    }
    const label = newId("restore");
    this.element.setAttribute("role", "group");
    this.element.setAttribute("aria-labelledby", label);
    fill(
      this.element,
      h("div", { class: "question-head", id: label }, icon("discard"), ` ${headOf(preview, wanted.again)}`),
      !preview.conversation && preview.why ? h("div", { class: "rule" }, oneLine(preview.why)) : undefined,
      ...preview.files.map((file) => this.file(file)),
      h("div", { class: "answers" }, this.filesBox(preview), this.cancel("Cancel"), wanted.again ? undefined : this.go(preview)),
    );
    if (!wanted.again) this.element.querySelector("button")?.focus();
  }

  private file(file: Preview["files"][number]): HTMLElement {
    const name = file.movedFrom ? `${oneLine(file.movedFrom)} → ${oneLine(file.path)}` : oneLine(file.path);
    const words = file.conflict ? `left alone: ${oneLine(file.conflict)}` : `${verbs[file.action] ?? file.action} +${file.added} -${file.removed}`;
    if (!file.diff) return h("div", { class: "restore-file" }, name, " ", h("span", { class: "dim" }, words));
    const details = h("details", {}, h("summary", {}, name, " ", h("span", { class: "dim" }, words)));
    details.addEventListener("toggle", () => details.open && details.children.length === 1 && details.append(diff(this.shown, file.diff ?? "", [file.path])));
    return details;
  }

  private filesBox(preview: Preview): HTMLElement | undefined {
    if (!preview.files.some((file) => file.action !== "nothing")) return undefined;
    const box = h("input", { type: "checkbox", checked: true });
    box.addEventListener("change", () => (this.files = box.checked));
    return h("label", { class: "check" }, box, " Files go back, too");
  }

  private cancel(label: string): HTMLElement {
    return button(label, () => this.close(), "secondary");
  }

  private go(preview: Preview): HTMLElement {
    return button("Go back", () => {
      this.shown.post({ type: "restore", turnId: preview.turnId, files: this.files, conversation: preview.conversation });
      this.close();
    });
  }
}

const verbs: Readonly<Record<string, string>> = { create: "comes back", change: "changes", remove: "is removed", rename: "is renamed", nothing: "stays" };

function headOf(preview: Preview, again: boolean): string {
  const turns = `${preview.turns.length} turn${preview.turns.length === 1 ? "" : "s"}`;
  if (again) return `Sending takes back ${turns} first`;
  return preview.conversation ? `This takes back ${turns}` : `This takes back the files of ${turns}; the conversation stays`;
}
