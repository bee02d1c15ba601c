import * as vscode from "vscode";
import {
  about,
  buttonLine,
  isOfLines,
  isProposed,
  type Target,
  touching,
  unseen,
  unseenBlock,
} from "./hunks";
import type { Reviews } from "./reviews";
import { drawsInEditor } from "./settings";

/** What the buttons of a hunk pass to their commands. */
export interface HunkName {
  uri: string;
  proposed: boolean;
  hunkId: string;
}

/** Hunks of one document that have buttons: more cost a drawing and help nobody. */
const MOST = 500;

export function nameOf({ file, hunk }: Target): HunkName {
  return { uri: file.uri, proposed: isProposed(file), hunkId: hunk.hunkId };
}

/** Buttons above each hunk, and what the text does not show of it. */
export class Lenses implements vscode.CodeLensProvider {
  private readonly changed = new vscode.EventEmitter<void>();
  readonly onDidChangeCodeLenses = this.changed.event;

  constructor(private readonly reviews: Reviews) {}

  refresh(): void {
    this.changed.fire();
  }

  async provideCodeLenses(
    document: vscode.TextDocument,
    token: vscode.CancellationToken,
  ): Promise<vscode.CodeLens[] | undefined> {
    if (!drawsInEditor()) return [];
    const files = await this.reviews.in(document);
    // With undefined the editor keeps those that it shows, which move along with the text.
    if (!files || token.isCancellationRequested) return undefined;
    const all = files.flatMap((file) => file.hunks.map((hunk) => ({ file, hunk })));
    return all.slice(0, MOST).flatMap((target) => lensesOf(target, document.lineCount));
  }
}

function lensesOf(target: Target, lines: number): vscode.CodeLens[] {
  const line = buttonLine(target.hunk, lines);
  const range = new vscode.Range(line, 0, line, 0);
  const name = nameOf(target);
  const lens = (title: string, command: string, tooltip: string) =>
    new vscode.CodeLens(range, { title, command, tooltip, arguments: [name] });
  const proposed = isProposed(target.file);
  const found = [
    lens("$(check) Accept", "magy.review.accept", proposed ? "Apply what is proposed" : about(target)),
    lens("$(close) Reject", "magy.review.reject", proposed ? "Leave it as it is" : "The old lines come back"),
  ];
  if (isOfLines(target.hunk)) {
    found.push(lens("Amend", "magy.review.amend", "Write it yourself; the agent is told"));
  }
  const comments = target.hunk.comments.length;
  const comment = comments ? `$(comment) ${comments}` : "Comment";
  found.push(lens(comment, "magy.review.comment", "Say something about it to the agent"));
  if (target.hunk.state === "conflict") {
    found.push(lens("$(warning) you changed these lines", "magy.review.showUnseen", about(target)));
  }
  const rest = unseen(target);
  if (rest) found.push(lens(rest, "magy.review.showUnseen", "Show them here"));
  return found;
}

/** The lines that are not in the text, who changed it, and what was said about it. */
export class Hovers implements vscode.HoverProvider {
  constructor(private readonly reviews: Reviews) {}

  async provideHover(
    document: vscode.TextDocument,
    position: vscode.Position,
  ): Promise<vscode.Hover | undefined> {
    const files = drawsInEditor() ? await this.reviews.in(document) : undefined;
    const targets = touching(files ?? [], position.line, position.line);
    return targets.length ? new vscode.Hover(targets.map(described)) : undefined;
  }
}

function described(target: Target): vscode.MarkdownString {
  const text = new vscode.MarkdownString("", true);
  text.isTrusted = {
    enabledCommands: ["magy.review.accept", "magy.review.reject", "magy.review.rejectBecause"],
  };
  text.appendText(`${about(target)}.`);
  const block = unseenBlock(target);
  if (block) text.appendMarkdown(`\n\n${block}\n`);
  for (const { text: said } of target.hunk.comments) {
    text.appendMarkdown("\n\n$(comment) ").appendText(said);
  }
  const argument = encodeURIComponent(JSON.stringify([nameOf(target)]));
  const link = (title: string, command: string) => `[${title}](command:${command}?${argument})`;
  text.appendMarkdown(
    `\n\n${link("$(check) Accept", "magy.review.accept")} \u00a0 ` +
      `${link("$(close) Reject", "magy.review.reject")} \u00a0 ` +
      link("Reject, and say why", "magy.review.rejectBecause"),
  );
  return text;
}
