import { execFile } from "node:child_process";
import * as vscode from "vscode";
import { type Connection, PROTOCOL } from "../connection";
import { ServerGone } from "../wire/errors";
import type { DoctorCheck } from "../wire/generated";
import type { ServerLauncher } from "./launcher";

const SCHEME = "magy-doctor";
const MARKS: Record<DoctorCheck["status"], string> = { ok: "✓ ", info: "", warn: "⚠ ", fail: "✗ " };

/** Shows what the doctor finds, to be read and copied. */
export class Doctor implements vscode.TextDocumentContentProvider {
  private text = "";
  private readonly changed = new vscode.EventEmitter<vscode.Uri>();
  private readonly uri = vscode.Uri.from({ scheme: SCHEME, path: "Magy Doctor.md" });
  readonly onDidChange = this.changed.event;

  constructor(
    context: vscode.ExtensionContext,
    private readonly connection: Connection,
    private readonly launcher: ServerLauncher,
    private readonly version: string,
  ) {
    const provider = vscode.workspace.registerTextDocumentContentProvider(SCHEME, this);
    context.subscriptions.push(provider, this.changed);
  }

  provideTextDocumentContent(): string {
    return this.text;
  }

  async run(): Promise<void> {
    this.text = await vscode.window.withProgress(
      { location: vscode.ProgressLocation.Notification, title: "Magy's doctor looks", cancellable: true },
      (_, token) => this.examine(token),
    );
    this.changed.fire(this.uri);
    await this.open();
  }

  /** As it is read; as its source where VS Code's own view of Markdown is turned off. */
  private async open(): Promise<void> {
    const there = vscode.extensions.getExtension("vscode.markdown-language-features") !== undefined;
    if (there) await vscode.commands.executeCommand("markdown.showPreview", this.uri);
    else await vscode.window.showTextDocument(this.uri, { preview: false });
  }

  private async examine(token: vscode.CancellationToken): Promise<string> {
    const cwd = vscode.workspace.workspaceFolders?.[0]?.uri.fsPath;
    const editor = this.facts();
    try {
      const { checks, report } = await this.connection.request("magy/doctor/run", { cwd, editor }, token);
      const wrong = checks.filter((check) => check.status === "fail" || check.status === "warn");
      const notes = checks.filter((check) => check.status === "info" && check.fix);
      const parts = [
        ["What to mend", wrong.length ? wrong.map(told).join("\n") : "Nothing is wrong."],
        ["Worth knowing", notes.map(told).join("\n")],
        ["The whole report, for an issue", report],
      ];
      const shown = parts.filter(([, text]) => text).map(([title, text]) => `# ${title}\n\n${text}\n`);
      return shown.join("\n");
    } catch (error) {
      if (!(error instanceof ServerGone)) throw error;
      const found = this.launcher.program;
      const said = found ? await alone(found.path, cwd) : "";
      const facts = Object.entries(editor).map(([name, value]) => `- ${name}: ${String(value)}`);
      return `# The server does not run\n\n${error.message}\n\n${facts.join("\n")}\n\n${said}`;
    }
  }

  private facts(): Record<string, unknown> {
    return {
      editor: `${vscode.env.appName} ${vscode.version}`,
      extension: this.version,
      protocol: PROTOCOL,
      remote: vscode.env.remoteName ?? "no",
      trusted: vscode.workspace.isTrusted,
      server: this.launcher.program?.path ?? "none was found",
      connection: this.connection.state,
    };
  }
}

function told({ status, name, summary, fix }: DoctorCheck): string {
  return `- ${MARKS[status]}**${name}**: ${summary}\n  ${fix}`;
}

/** What `magy doctor` says where the server cannot be asked. */
function alone(program: string, cwd: string | undefined): Promise<string> {
  return new Promise((resolve) => {
    execFile(program, ["doctor"], { cwd, timeout: 120_000 }, (_, out, err) => {
      resolve(`## \`magy doctor\`\n\n\`\`\`\n${out}${err}\n\`\`\`\n`);
    });
  });
}
