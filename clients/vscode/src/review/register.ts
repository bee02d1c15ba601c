import * as vscode from "vscode";
import { registerCommands } from "../commands";
import type { Magy } from "../magy";
import { Amending } from "./amending";
import { Contexts } from "./contexts";
import { Deciding } from "./deciding";
import { Decorations } from "./decorations";
import { type HunkName, Hovers, Lenses } from "./lenses";
import { LiveDocuments } from "./live";
import type { Reviews } from "./reviews";
import { ReviewSourceControl } from "./sourceControl";
import { type Place, Targets } from "./targets";
import { Texts } from "./texts";
import { Visiting } from "./visiting";

const FILES: vscode.DocumentSelector = { scheme: "file" };

/** Review by hunk: in the text, in the gutter, in the list of files and in diffs. */
export function registerReview(context: vscode.ExtensionContext, magy: Magy, reviews: Reviews): void {
  const { connection, log } = magy;
  const targets = new Targets(reviews);
  const visiting = new Visiting(connection, reviews, targets);
  const deciding = new Deciding(magy, reviews, targets, visiting);
  const lenses = new Lenses(reviews);
  const texts = new Texts(reviews);
  const amending = new Amending(targets, deciding);
  context.subscriptions.push(
    new LiveDocuments(connection),
    texts,
    amending,
    new Decorations(reviews),
    new Contexts(reviews),
    new ReviewSourceControl(reviews),
    vscode.languages.registerCodeLensProvider(FILES, lenses),
    vscode.languages.registerHoverProvider(FILES, new Hovers(reviews)),
    reviews.onDidChange(() => lenses.refresh()),
    vscode.workspace.onDidChangeConfiguration((event) => {
      if (event.affectsConfiguration("magy.review")) lenses.refresh();
    }),
  );
  const inTurn = inOrder();
  const active = () => vscode.window.activeTextEditor?.document;
  registerCommands(context, log, {
    "magy.review.accept": inTurn((place: Place, ...change: unknown[]) =>
      deciding.hunks("accept", false, place, ...change),
    ),
    "magy.review.acceptAll": inTurn(() => deciding.everything("accept")),
    "magy.review.acceptFile": inTurn((place: Place) => deciding.file("accept", place)),
    "magy.review.amend": inTurn((place: Place) => amending.begin(place)),
    "magy.review.amendDone": () => amending.done(active()),
    "magy.review.amendGiveUp": () => amending.giveUp(active()),
    "magy.review.comment": inTurn((place: Place) => deciding.comment(place)),
    "magy.review.nextChange": inTurn(() => visiting.go("next")),
    "magy.review.openAll": () => visiting.all(),
    "magy.review.openBase": (place: Place) => visiting.base(place),
    "magy.review.openDiff": (place: Place) => visiting.diff(place),
    "magy.review.previousChange": inTurn(() => visiting.go("previous")),
    "magy.review.reject": inTurn((place: Place, ...change: unknown[]) =>
      deciding.hunks("reject", false, place, ...change),
    ),
    "magy.review.rejectAll": inTurn(() => deciding.everything("reject")),
    "magy.review.rejectBecause": inTurn((place: Place) => deciding.hunks("reject", true, place)),
    "magy.review.rejectFile": inTurn((place: Place) => deciding.file("reject", place)),
    "magy.review.showUnseen": (name: HunkName) => texts.show(name),
    "magy.review.undoDecision": inTurn(() => deciding.undo(false)),
    "magy.review.undoWhichDecision": inTurn(() => deciding.undo(true)),
  });
}

/** Lets commands that are given fast run one after the other: each is about the place that the
 * one before has gone to. */
function inOrder() {
  let last: Promise<unknown> = Promise.resolve();
  return <A extends unknown[]>(run: (...args: A) => Promise<void>) =>
    (...args: A): Promise<void> => {
      const result = last.then(() => run(...args));
      last = result.catch(() => undefined);
      return result;
    };
}
