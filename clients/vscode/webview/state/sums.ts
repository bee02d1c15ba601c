/** Sums of tokens and dollars, and their words. */

import type { Spent, Usage } from "./blocks";

export function nothing(): Spent {
  return { usage: {}, amount: 0, unpriced: 0 };
}

/** Adds what one request took; `cost` is null where the price is not known. */
export function add(spent: Spent, usage: Usage, cost: number | null | undefined): void {
  for (const [kind, tokens] of Object.entries(usage)) {
    if (typeof tokens === "number") spent.usage[kind] = (spent.usage[kind] ?? 0) + tokens;
  }
  if (typeof cost === "number") spent.amount += cost;
  else spent.unpriced += 1;
}

/** Adds one sum to another. */
export function join(spent: Spent, more: Spent): void {
  for (const [kind, tokens] of Object.entries(more.usage)) {
    spent.usage[kind] = (spent.usage[kind] ?? 0) + tokens;
  }
  spent.amount += more.amount;
  spent.unpriced += more.unpriced;
}

/** 1234 -> "1.2k". */
export function short(number: number): string {
  const units = ["", "k", "M", "G", "T"];
  let unit = 0;
  while (number >= 1000 && unit < units.length - 1) {
    number /= 1000;
    unit += 1;
  }
  const rest = number % 1;
  const digits = number < 10 && rest >= 0.05 && rest < 0.95 ? 1 : 0;
  return `${number.toFixed(digits)}${units[unit] ?? ""}`;
}

/** "+" says that some requests did not say what they took, "?" that none did. */
export function tokens(usage: Usage): string {
  const total = usage.totalTokens ?? 0;
  const unknown = (usage.unreportedRequests ?? 0) > 0;
  if (total > 0) return short(total) + (unknown ? "+" : "");
  return unknown ? "?" : "";
}

function dollars(amount: number, unpriced: number): string {
  if (!(amount > 0)) return "";
  return `$${amount.toFixed(amount < 0.1 ? 3 : 2)}${unpriced > 0 ? "+" : ""}`;
}

function cached(usage: Usage): string {
  const hit = usage.cachedReadTokens ?? 0;
  const read = (usage.inputTokens ?? 0) + hit + (usage.cachedWriteTokens ?? 0);
  return hit > 0 && read > 0 ? `${Math.floor((100 * hit) / read)}% cached` : "";
}

/** A sum as words: tokens, share from caches, dollars. */
export function words(spent: Spent): string[] {
  const sum = tokens(spent.usage);
  const said = sum === "?" ? "tokens unknown" : sum && `${sum} tokens`;
  return [said, cached(spent.usage), dollars(spent.amount, spent.unpriced)].filter(Boolean);
}

/** Usage and cost as the wire has them: `{amount, unpriced}`. */
export function spentOf(usage: unknown, cost: unknown): Spent {
  const money = (cost ?? {}) as { amount?: number; unpriced?: number };
  return {
    usage: { ...((usage ?? {}) as Usage) },
    amount: money.amount ?? 0,
    unpriced: money.unpriced ?? 0,
  };
}
