/** What stands where no transcript is yet: what can be done here, or what is missing before that. */

import type { Offered } from "../../src/transcript/messages";
import { button, h, icon } from "./dom";
import type { Child } from "./dom";
import type { Connection } from "./header";
import type { Shown } from "./shown";

/** What is missing, as a word; empty: nothing is. */
export function missing({ t }: Shown, connection: Connection): "" | "model" | "server" | "ended" {
  if (connection.state === "missing") return "server";
  if (connection.state === "dead" || connection.state === "stopped") return "ended";
  return connection.state === "running" && t.options.get("model") === "" ? "model" : "";
}

export function welcome(shown: Shown, connection: Connection): Child[] {
  const remedy = (words: string, command: Offered, extra = "secondary") =>
    button(words, () => shown.post({ type: "run", command }), extra);
  switch (missing(shown, connection)) {
    case "server":
      return [
        heading("Magy's server is not here yet"),
        h("p", {}, connection.message || "Agents run in a program of their own, beside VS Code."),
        actions(remedy("Install Server…", "installServer", ""), remedy("Say Where It Is…", "locateServer")),
      ];
    case "ended":
      return [
        heading("Magy's server does not run"),
        h("p", {}, connection.message || "Nothing is lost: sessions go on where they were."),
        actions(remedy("Restart Server", "restartServer", ""), remedy("Run Doctor", "runDoctor")),
      ];
    case "model":
      return noModel(shown, remedy);
    case "":
      return [heading("What shall we do?"), ideas()];
  }
}

function noModel(shown: Shown, remedy: (words: string, command: Offered, extra?: string) => HTMLElement): Child[] {
  return [
    heading("Magy needs a model"),
    h("p", {}, "Set the API key of a provider: Anthropic, OpenAI, Gemini, Mistral, DeepSeek, Groq, Moonshot, OpenRouter or one of your own."),
    actions(remedy("Set API Key…", "setApiKey", ""), remedy("Choose Model…", "selectModel")),
    h(
      "p",
      {},
      "Or use a model on this machine, without any key: start Ollama, llama.cpp, vLLM or LM Studio there. It is found at its usual port; agents need a model that can call tools, with a context of 32,000 tokens or more.",
    ),
    actions(button("Look Again", () => shown.post({ type: "lookAgain" }), "secondary"), remedy("Run Doctor", "runDoctor")),
  ];
}

function heading(words: string): HTMLElement {
  return h("div", { class: "welcome", role: "heading", "aria-level": 2 }, words);
}

function actions(...buttons: HTMLElement[]): HTMLElement {
  return h("div", { class: "remedies" }, ...buttons);
}

function ideas(): HTMLElement {
  const row = (name: string, ...words: (string | HTMLElement)[]) => h("li", {}, icon(name), h("span", {}, ...words));
  const key = (text: string) => h("kbd", {}, text);
  return h(
    "ul",
    { role: "list" },
    row("mention", key("@"), " mentions files, symbols, ", key("@problems"), " and ", key("@terminal")),
    row("zap", key("/"), " runs an action: explain, test, review and your own"),
    row("diff", "Edits land in your files at once and wait for your review, hunk by hunk"),
    row("history", "Any message can be taken back, with all that came of it"),
  );
}
