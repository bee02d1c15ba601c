import { randomUUID } from "node:crypto";
import * as vscode from "vscode";
import { sentence, tell } from "../commands";
import type { Magy } from "../magy";
import type { ReviewEntry, ReviewFile, ReviewOutcome } from "../wire/generated";
import { type Decision, Decisions, summary, trouble } from "./decisions";
import { counted, isProposed } from "./hunks";
import type { Reviews } from "./reviews";
import { asksReason, goesOn } from "./settings";
import type { Chosen, LineChange, Place, Targets } from "./targets";
import type { Visiting } from "./visiting";

type Verb = "accept" | "reject";

/** Decides about hunks as the person says. */
export class Deciding {
  private readonly decisions = new Decisions();

  constructor(
    private readonly magy: Magy,
    private readonly reviews: Reviews,
    private readonly targets: Targets,
    private readonly visiting: Visiting,
  ) {}

  async hunks(verb: Verb, because: boolean, place: Place, ...change: unknown[]): Promise<void> {
    const [changes, index] = change as [LineChange[]?, number?];
    const chosen = await this.targets.hunks(place, changes, index);
    const reason = await this.reason(verb, because);
    if (reason === undefined) return;
    for (const one of chosen) await this.decide(verb, one.file, { ...one.which, reason });
    await this.goOn(chosen);
  }

  async file(verb: Verb, place: Place): Promise<void> {
    const entries = this.targets.entries(place);
    const reason = await this.reason(verb, false);
    if (reason === undefined) return;
    for (const entry of entries) await this.decide(verb, entry, { all: true, reason });
  }

  async everything(verb: Verb): Promise<void> {
    const entries = this.reviews.all;
    if (entries.length === 0) throw new Error("No change waits for a decision.");
    const { changes, files } = this.reviews.sum;
    const word = verb === "accept" ? "Accept" : "Reject";
    const what = `${counted(changes, "change")} in ${counted(files, "file")}`;
    const yes = `${word} All`;
    const said = await vscode.window.showWarningMessage(`${word} ${what}?`, { modal: true }, yes);
    if (said !== yes) return;
    const reason = await this.reason(verb, false);
    if (reason === undefined) return;
    const problems: string[] = [];
    for (const entry of entries) {
      // One that cannot be decided does not keep the others waiting.
      await this.decide(verb, entry, { all: true, reason }).catch((error: unknown) => problems.push(sentence(error)));
    }
    if (problems.length > 0) throw new Error(problems.join(" "));
  }

  async amend(file: ReviewFile, hunkId: string, text: string): Promise<boolean> {
    const which = { hunkIds: [hunkId], text };
    return (await this.decide("amend", file, which)).decisionId !== null;
  }

  async comment(place: Place): Promise<void> {
    const [chosen] = await this.targets.hunks(place);
    const hunkId = chosen && "hunkIds" in chosen.which ? chosen.which.hunkIds[0] : undefined;
    if (!chosen || !hunkId) throw new Error("Put the cursor into one change, without a selection.");
    const text = await vscode.window.showInputBox({
      prompt: "What do you want to say about this change? The agent is told; the change stays pending.",
      placeHolder: "Comment",
    });
    if (!text?.trim()) return;
    const outcome = await this.magy.connection.request("magy/review/comment", {
      uri: chosen.file.uri,
      proposed: isProposed(chosen.file),
      hunkId,
      text,
      requestKey: randomUUID(),
    });
    const problem = outcome.message;
    if (problem) return void tell("warning", problem);
    const hunk = chosen.file.hunks.find((one) => one.hunkId === hunkId);
    void this.offerToAsk(chosen.file.uri, hunk?.origins.at(-1)?.sessionId);
  }

  /** Says where the answer to a comment comes, and has it given now if the agent rests. */
  private async offerToAsk(uri: string, sessionId: string | undefined): Promise<void> {
    const { sessions } = this.magy;
    const about = sessions.summary?.session;
    const rests = about?.sessionId !== sessionId || about?.state === "idle";
    if (!sessionId || !rests) return said("$(comment) The agent is told; it answers in the transcript");
    const ask = "Ask Now";
    const chosen = await vscode.window.showInformationMessage("The agent reads your comment with your next prompt.", ask);
    if (chosen !== ask) return;
    const name = vscode.workspace.asRelativePath(vscode.Uri.parse(uri));
    const prompt = [{ type: "text" as const, text: `See my comment on your change of ${name}.` }];
    if (sessionId.includes("/")) {
      await this.magy.connection.request("magy/child/send", { sessionId, requestKey: randomUUID(), prompt });
    } else await this.magy.connection.request("magy/session/prompt", { sessionId, messageId: randomUUID(), prompt });
    sessions.show(sessionId);
    await vscode.commands.executeCommand("magy.transcript.focus", { preserveFocus: true });
  }

  async undo(choose: boolean): Promise<void> {
    const all = this.decisions.all;
    if (all.length === 0) throw new Error("This window has made no decision that can be undone.");
    const decision = choose ? await chosenOf(all) : all[0];
    if (!decision) return;
    const outcome = await this.magy.connection.request("magy/review/undo", {
      decisionId: decision.decisionId,
      uri: decision.uri,
      proposed: decision.proposed,
      requestKey: randomUUID(),
    });
    if (!outcome.decisionId) {
      void tell("warning", outcome.message || "This cannot be undone any more.");
      return;
    }
    this.decisions.remove(decision);
    if (outcome.message) void tell("warning", outcome.message);
    else said(`$(discard) Taken back: ${decision.label}`);
  }

  private async decide(
    decision: Verb | "amend",
    about: ReviewFile | ReviewEntry,
    which: object,
  ): Promise<ReviewOutcome> {
    const proposed = isProposed(about);
    const outcome = await this.magy.connection.request("magy/review/resolve", {
      uri: about.uri,
      proposed,
      revision: about.revision,
      decision,
      requestKey: randomUUID(),
      ...which,
    });
    const name = vscode.workspace.asRelativePath(vscode.Uri.parse(about.uri));
    const label = summary(name, outcome);
    if (outcome.decisionId) {
      this.decisions.add({ decisionId: outcome.decisionId, uri: about.uri, proposed, label });
    }
    const problem = trouble(outcome);
    if (problem) void tell("warning", problem);
    else said(`$(check) ${label}; ${outcome.pending} left`);
    return outcome;
  }

  /** What the agent is told of a rejection; undefined: the person thought better of it. */
  private async reason(verb: Verb, because: boolean): Promise<string | undefined> {
    if (verb === "accept" || !(because || asksReason())) return "";
    return vscode.window.showInputBox({
      prompt: "Why? The agent is told. Leave it empty to give no reason.",
      placeHolder: "Reason",
    });
  }

  /** To the next change of the file, if it is the one that the person is at. */
  private async goOn(chosen: readonly Chosen[]): Promise<void> {
    const editor = vscode.window.activeTextEditor;
    const uri = editor?.document.uri.toString();
    const here = chosen.some(({ file }) => vscode.Uri.parse(file.uri).toString() === uri);
    if (goesOn() && editor && here) await this.visiting.nextIn(editor);
  }
}

async function chosenOf(all: readonly Decision[]): Promise<Decision | undefined> {
  const items = all.map((decision) => ({ label: decision.label, decision }));
  const options = { title: "Magy: Undo a Decision", placeHolder: "The latest is the first" };
  return (await vscode.window.showQuickPick(items, options))?.decision;
}

function said(text: string): void {
  vscode.window.setStatusBarMessage(text, 5_000);
}
