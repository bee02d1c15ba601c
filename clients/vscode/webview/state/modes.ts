/** How free an agent is with files: the server's modes of review, and the agent that only plans. */

import type { Transcript } from "./transcript";

/** What each mode of review is called in the picker, and does. */
export const REVIEWS: Readonly<Record<string, { label: string; about: string }>> = {
  review: { label: "Review", about: "Edits are made at once, and stay under review until you decide" },
  propose: { label: "Ask first", about: "Files stay as they are until you accept what is proposed" },
  auto: { label: "Accept", about: "Edits are made and accepted" },
};
const PLAN = "plan";

export interface Change {
  configId: "agent" | "review";
  value: string;
}

/**
 * The step from the mode of the session to the next one: review, ask before edits, accept edits,
 * plan. `agent`: who works again after planning.
 */
export function nextMode(t: Transcript, agent: string): { changes: Change[]; label: string } {
  const agents = t.choices.get("agent") ?? [];
  const reviews = (t.choices.get("review") ?? []).filter((one) => one in REVIEWS);
  const now = t.options.get("review") ?? "";
  const [first = ""] = reviews;
  if (t.options.get("agent") === PLAN) {
    const worker = [agent, ...agents].find((one) => one !== PLAN && agents.includes(one)) ?? "";
    const changes: Change[] = [{ configId: "agent", value: worker }, { configId: "review", value: first }];
    return { changes: changes.filter((one) => one.value !== ""), label: labelOf(first) };
  }
  const next = reviews[reviews.indexOf(now) + 1];
  if (next !== undefined) return { changes: [{ configId: "review", value: next }], label: labelOf(next) };
  if (agents.includes(PLAN)) return { changes: [{ configId: "agent", value: PLAN }], label: "Plan: nothing is changed" };
  return { changes: first ? [{ configId: "review", value: first }] : [], label: labelOf(first) };
}

function labelOf(review: string): string {
  const mode = REVIEWS[review];
  return mode ? `${mode.label}: ${mode.about}` : review;
}
