import * as vscode from "vscode";
import type { Magy } from "../magy";
import { option } from "./summary";

interface Entry extends vscode.QuickPickItem {
  command: string;
}

/** What a click on the status item offers. */
export async function showMenu(magy: Magy): Promise<void> {
  const chosen = await vscode.window.showQuickPick(entries(magy), { title: "Magy" });
  if (chosen) await vscode.commands.executeCommand(chosen.command);
}

function entries({ connection, sessions, questions }: Magy): Entry[] {
  const { summary } = sessions;
  const server: Entry[] = [
    { label: "$(debug-restart) Restart Server", command: "magy.restartServer" },
    { label: "$(pulse) Run Doctor", command: "magy.runDoctor" },
    { label: "$(output) Show Log", command: "magy.showLog" },
    { label: "$(key) Set API Key…", command: "magy.setApiKey" },
  ];
  if (connection.state === "missing") {
    const ways = [
      { label: "$(cloud-download) Install Server…", command: "magy.installServer" },
      { label: "$(folder) Say Where the Server Is…", command: "magy.locateServer" },
    ];
    return [...ways, ...server];
  }
  if (["dead", "silent"].includes(connection.state)) return server;
  const asks = questions.open.length
    ? [{ label: `$(question) Answer Question (${questions.open.length} open)`, command: "magy.answerQuestion" }]
    : [];
  const running = summary?.session.state === "running" || summary?.session.state === "requires_action";
  const stop = running ? [{ label: "$(debug-stop) Stop What Runs", command: "magy.interrupt" }] : [];
  const bypass = option(summary, "bypass") === "on" ? "on" : "off";
  return [
    ...asks,
    ...stop,
    { label: "$(comment) Show Transcript", command: "magy.focusTranscript" },
    { label: "$(add) New Session", command: "magy.newSession" },
    { label: "$(history) Resume Session…", command: "magy.resumeSession" },
    chosen("$(person) Agent…", option(summary, "agent"), "magy.selectAgent"),
    chosen("$(server-environment) Model…", option(summary, "model"), "magy.selectModel"),
    chosen("$(diff) Review Mode…", option(summary, "review"), "magy.selectReviewMode"),
    chosen("$(unlock) Bypass Questions", bypass, "magy.toggleBypass"),
    { label: "$(shield) Remembered Permissions…", command: "magy.showPermissions" },
    ...server,
  ];
}

function chosen(label: string, value: string | undefined, command: string): Entry {
  return { label, description: value ?? "", command };
}
