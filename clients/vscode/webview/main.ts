/** The page of a transcript: what the extension tells becomes blocks, what a person does is told. */

import "@vscode/codicons/dist/codicon.css";
import "./style.css";
import type { FromPage, Kept, ToPage } from "../src/transcript/messages";
import { Page } from "./page";

interface Host {
  postMessage(message: FromPage): void;
  getState(): Kept | undefined;
  setState(kept: Kept): void;
}

declare function acquireVsCodeApi(): Host;

const host = acquireVsCodeApi();
const page = new Page(document.body, (message) => host.postMessage(message), (kept) => host.setState(kept));
window.addEventListener("message", (event: MessageEvent<ToPage>) => page.receive(event.data));
page.start(host.getState() ?? {});
