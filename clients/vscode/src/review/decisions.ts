// The decisions that were made in this window, to be told and to be undone. Pure.
import type { ReviewOutcome } from "../wire/generated";
import { counted } from "./hunks";

/** Decisions that can be undone here; the server forgets none. */
const KEPT = 200;

export interface Decision {
  decisionId: string;
  uri: string;
  proposed: boolean;
  label: string;
}

export class Decisions {
  private kept: Decision[] = [];

  /** The latest first. */
  get all(): readonly Decision[] {
    return this.kept;
  }

  add(decision: Decision): void {
    this.kept = [decision, ...this.kept].slice(0, KEPT);
  }

  remove(decision: Decision): void {
    this.kept = this.kept.filter((one) => one !== decision);
  }
}

const DECIDED = ["accepted", "rejected", "amended"];

/** What a decision came to, such as "Accepted 2 changes in app.py". */
export function summary(name: string, outcome: ReviewOutcome): string {
  const done = outcome.results.filter((one) => DECIDED.includes(one.state));
  const word = done[0]?.state ?? "decided";
  return `${word[0]?.toUpperCase()}${word.slice(1)} ${counted(done.length, "change")} in ${name}`;
}

/** What a person should read of an outcome; null: all went as asked. */
export function trouble(outcome: ReviewOutcome): string | null {
  if (outcome.message) return outcome.message;
  if (outcome.decisionId) return null;
  return outcome.results.some((one) => one.state === "stale")
    ? "That change is another one by now. Look at it again."
    : "Nothing was decided.";
}
