import * as vscode from "vscode";

/** What a person chose: a row, and what they had typed by then. */
export interface Picked<T> {
  row: T;
  typed: string;
}

/**
 * Asks at once, so that no key that is pressed meanwhile goes elsewhere. Each of `lists` takes the
 * place of the one before, as soon as it is known. Undefined: the person chose none.
 */
export async function pickAsTheyCome<T extends vscode.QuickPickItem>(
  title: string,
  lists: AsyncIterable<readonly T[]>,
): Promise<Picked<T> | undefined> {
  const box = vscode.window.createQuickPick<T>();
  Object.assign(box, { title, busy: true, matchOnDescription: true, matchOnDetail: true });
  const chosen = new Promise<Picked<T> | undefined>((resolve, reject) => {
    box.onDidAccept(() => {
      const [row] = box.selectedItems;
      if (row) resolve({ row, typed: box.value.trim() });
    });
    box.onDidHide(() => resolve(undefined));
    fill(box, lists).catch(reject);
  });
  box.show();
  try {
    return await chosen;
  } finally {
    box.dispose();
  }
}

async function fill<T extends vscode.QuickPickItem>(
  box: vscode.QuickPick<T>,
  lists: AsyncIterable<readonly T[]>,
): Promise<void> {
  for await (const rows of lists) {
    const label = box.activeItems[0]?.label;
    box.items = rows;
    const same = rows.find((row) => row.label === label);
    if (same) box.activeItems = [same];
  }
  box.busy = false;
}
