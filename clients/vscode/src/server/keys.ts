import * as vscode from "vscode";

/** Providers that need no configuration, and the variable of their key. */
const PROVIDERS: Readonly<Record<string, string>> = {
  anthropic: "ANTHROPIC_API_KEY",
  openai: "OPENAI_API_KEY",
  deepseek: "DEEPSEEK_API_KEY",
  mistral: "MISTRAL_API_KEY",
  gemini: "GEMINI_API_KEY",
  groq: "GROQ_API_KEY",
  moonshot: "MOONSHOT_API_KEY",
  openrouter: "OPENROUTER_API_KEY",
};

const SECRET = "magy.keys";
const OTHER = "Another provider of magy.toml…";

/** The keys that VS Code keeps for the person, by provider, in its secret storage. */
export class Keys {
  constructor(private readonly secrets: vscode.SecretStorage) {}

  async all(): Promise<Record<string, string>> {
    return JSON.parse((await this.secrets.get(SECRET)) ?? "{}") as Record<string, string>;
  }

  async set(provider: string, key: string | undefined): Promise<void> {
    const keys = await this.all();
    if (key) keys[provider] = key;
    else delete keys[provider];
    await this.secrets.store(SECRET, JSON.stringify(keys));
  }

  /** Asks for a provider and its key. Returns a sentence on what was done; undefined: nothing. */
  async ask(): Promise<string | undefined> {
    const kept = await this.all();
    const provider = await askProvider(kept);
    if (!provider) return undefined;
    if (kept[provider]) {
      const [replace, forget] = ["Replace the key", "Forget the key"];
      const choice = await vscode.window.showQuickPick([replace, forget], {
        title: `VS Code keeps a key for ${provider}`,
      });
      if (!choice) return undefined;
      if (choice === forget) {
        await this.set(provider, undefined);
        return `VS Code has forgotten the key for ${provider}.`;
      }
    }
    const key = await vscode.window.showInputBox({
      title: `API key for ${provider}`,
      prompt: "VS Code keeps it in its secret storage and lends it to Magy's server, in memory.",
      password: true,
      ignoreFocusOut: true,
      validateInput: (text) => (/^\s*$/.test(text) ? "Paste the key." : undefined),
    });
    if (!key?.trim()) return undefined;
    await this.set(provider, key.trim());
    return `VS Code keeps the key for ${provider}.`;
  }
}

async function askProvider(kept: Record<string, string>): Promise<string | undefined> {
  const names = [...new Set([...Object.keys(PROVIDERS), ...Object.keys(kept)])];
  const items = names.map((label) => ({ label, description: about(label, kept) }));
  const choice = await vscode.window.showQuickPick([...items, { label: OTHER, description: "" }], {
    title: "Set API Key",
    placeHolder: "For which provider? A key of the environment goes first.",
  });
  if (choice?.label !== OTHER) return choice?.label;
  return vscode.window.showInputBox({
    title: "Name of the provider, as in magy.toml",
    prompt: "Without an api_key_env in its entry there, a provider gets no key.",
    validateInput: (text) => (/^[\w.-]+$/.test(text) ? undefined : "A name has no blanks."),
  });
}

function about(provider: string, kept: Record<string, string>): string {
  const variable = PROVIDERS[provider];
  const first = variable && process.env[variable] ? `${variable} is set and goes first` : "";
  return [kept[provider] ? "a key is kept" : "", first].filter(Boolean).join("; ");
}
