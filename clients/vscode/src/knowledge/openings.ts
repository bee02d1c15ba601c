/** Files that are opened because something is asked about them: one opening serves all who ask meanwhile. */
export class Openings {
  private readonly underWay = new Map<string, Promise<number>>();

  /** Returns until when (in milliseconds, as `Date.now`) what knows the file may still be starting; 0: it knew the file
   * before. `open` opens a file and says until when, and runs only if nobody opens this one already. */
  until(uri: string, isOpen: boolean, open: () => Promise<number>): Promise<number> {
    const begun = this.underWay.get(uri);
    if (begun) return begun;
    if (isOpen) return Promise.resolve(0);
    const opening = open();
    this.underWay.set(uri, opening);
    const over = () => this.underWay.delete(uri);
    opening.then((end) => setTimeout(over, end - Date.now()), over);
    return opening;
  }
}
