import * as vscode from "vscode";
import type { Form, FormField } from "../wire/generated";

type Filled = Record<string, string | string[]>;
type Item = vscode.QuickPickItem & { value: string };

/** Asks for the fields of a form, one after the other. Escape leaves the question open: undefined. The server
 * checks the values. */
export async function fillIn(form: Form): Promise<Filled | undefined> {
  const filled: Filled = {};
  for (const [at, field] of form.fields.entries()) {
    const step = form.fields.length > 1 ? ` (${at + 1} of ${form.fields.length})` : "";
    const value = await ask(field, `${form.server} asks${step}: ${field.label}`);
    if (value === undefined) return undefined;
    if (value.length) filled[field.name] = value;
  }
  return filled;
}

function ask(field: FormField, title: string): Promise<string | string[] | undefined> {
  const items = choices(field);
  const words = [field.hint, field.required ? "" : "may be left out", field.about].filter(Boolean).join("; ");
  if (items.length && field.many) return pickMany(field, items, title, words);
  return items.length ? pickOne(field, items, title, words) : type(field, title, words);
}

function choices(field: FormField): Item[] {
  if (field.type === "boolean") return ["yes", "no"].map((value) => ({ label: value, value }));
  return field.choices.map(({ value, name }) => ({ label: value, description: name, value }));
}

async function pickOne(field: FormField, items: Item[], title: string, placeHolder: string): Promise<string | undefined> {
  const known = typeof field.default === "boolean" ? (field.default ? "yes" : "no") : field.default;
  const first = items.filter(({ value }) => value === known);
  const rest = items.filter(({ value }) => value !== known);
  const none = field.required ? [] : [{ label: "Leave it out", value: "" }];
  const options = { title, placeHolder, ignoreFocusOut: true };
  return (await vscode.window.showQuickPick([...first, ...rest, ...none], options))?.value;
}

async function pickMany(field: FormField, items: Item[], title: string, placeHolder: string): Promise<string[] | undefined> {
  const known = Array.isArray(field.default) ? field.default : [];
  const offered = items.map((one) => ({ ...one, picked: known.includes(one.value) }));
  const options = { title, placeHolder, ignoreFocusOut: true, canPickMany: true as const };
  return (await vscode.window.showQuickPick(offered, options))?.map(({ value }) => value);
}

async function type(field: FormField, title: string, prompt: string): Promise<string | undefined> {
  const value = field.default === null || field.default === undefined ? "" : String(field.default);
  const validateInput = (text: string) => (field.required && !text.trim() ? "It must be filled in." : undefined);
  return vscode.window.showInputBox({ title, prompt, value, ignoreFocusOut: true, validateInput });
}
