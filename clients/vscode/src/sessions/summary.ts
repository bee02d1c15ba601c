import type { AnyUpdate, Summary } from "../wire/generated";

/** The summary after an update; the same object where the update changes nothing of it. */
export function updated(summary: Summary, update: AnyUpdate): Summary {
  switch (update.sessionUpdate) {
    case "state_update":
      return { ...summary, session: { ...summary.session, state: update.state } };
    case "user_message":
      // As the server lists it from then on.
      if (summary.session.title) return summary;
      return { ...summary, session: { ...summary.session, title: firstLine(update) || null } };
    case "session_info_update":
      return { ...summary, session: { ...summary.session, title: update.title } };
    case "config_option_update": {
      const values = new Map(update.configOptions.map((one) => [one.configId, one.currentValue]));
      const configOptions = summary.configOptions.map((one) => ({
        ...one,
        currentValue: values.get(one.configId) ?? one.currentValue,
      }));
      return { ...summary, configOptions };
    }
    case "usage_update": {
      const more = update._meta?.magy.cost ?? undefined;
      return {
        ...summary,
        cost: plus(summary.cost, more),
        treeCost: plus(summary.treeCost, more),
      };
    }
    default:
      return summary;
  }
}

/** What a session without a title of its own is called: the first line of its first prompt. */
export function firstLine(prompt: Extract<AnyUpdate, { sessionUpdate: "user_message" }>): string {
  const words = prompt.content.map((block) => (block.type === "text" ? block.text : "")).join(" ").trim();
  return words.split("\n")[0] ?? "";
}

function plus(cost: Summary["cost"], more: number | undefined): Summary["cost"] {
  if (more === undefined) return { ...cost, unpriced: (cost.unpriced ?? 0) + 1 };
  return { ...cost, amount: (cost.amount ?? 0) + more };
}

/** The value of one of a session's options, such as `agent`, `model`, `review` and `bypass`. */
export function option(summary: Summary | undefined, id: string): string | undefined {
  return summary?.configOptions.find((one) => one.configId === id)?.currentValue;
}
