import type { Connection } from "../connection";
import type { SessionListener } from "../magy";
import { MagyError } from "../wire/errors";
import type { AnyUpdate, SubscribeResult, Update } from "../wire/generated";

/** A listener, and the last entry that it has had; undefined: it has had no page yet. */
interface Heard {
  listener: SessionListener;
  seen: number | undefined;
}

/** What `Subscriptions` needs of the connection. */
export type Wire = Pick<Connection, "request" | "on" | "onDidChangeState" | "state">;

/**
 * The sessions that this window is subscribed to. The server knows one subscription of a session
 * for each connection; here any number of parts may listen, and each gets what it has not had.
 */
export class Subscriptions {
  private readonly sessions = new Map<string, Set<Heard>>();

  constructor(
    private readonly wire: Wire,
    /** Whether a turn of this session that was interrupted is to go on. */
    private readonly resumes: (sessionId: string) => boolean,
  ) {
    wire.on("magy/session/update", ({ sessionId, update }) => this.deliver(sessionId, update));
    wire.onDidChangeState((state) => {
      if (state === "running") for (const id of this.sessions.keys()) void this.attach(id);
    });
  }

  add(sessionId: string, listener: SessionListener): { dispose(): void } {
    const all = this.sessions.get(sessionId) ?? new Set<Heard>();
    const heard: Heard = { listener, seen: undefined };
    this.sessions.set(sessionId, all.add(heard));
    void this.attach(sessionId);
    return { dispose: () => this.remove(sessionId, heard) };
  }

  /** Subscribes anew, so that each listener gets what it lacks. */
  private async attach(sessionId: string): Promise<void> {
    const listeners = [...(this.sessions.get(sessionId) ?? [])];
    if (!listeners.length) return;
    const method = this.resumes(sessionId) ? "magy/session/resume" : "magy/session/subscribe";
    const known = listeners.map((one) => one.seen ?? -1);
    const from = known.includes(-1) ? { tail: 20 } : { seq: Math.min(...known) };
    let page: SubscribeResult;
    try {
      page = await this.wire.request(method, { sessionId, from });
    } catch (error) {
      // When the server has gone, its next one is asked again; that one may run already.
      if (error instanceof MagyError) {
        const left = this.sessions.get(sessionId);
        for (const one of listeners) {
          if (left?.delete(one)) one.listener.failed(error);
        }
        if (!left?.size) this.sessions.delete(sessionId);
      }
      return;
    }
    const there = listeners.filter((one) => this.sessions.get(sessionId)?.has(one));
    const others = there.filter((one) => page.headSeq < (one.seen ?? 0));
    if (others.length) {
      // It is another session with the same id: begin anew with it.
      for (const one of others) one.seen = undefined;
      await this.attach(sessionId);
    } else {
      for (const one of there) give(page, one);
    }
  }

  private deliver(sessionId: string, update: AnyUpdate): void {
    const about = update._meta as { magy?: { seq?: number | null } } | null | undefined; // of a newer server, perhaps
    const seq = about?.magy?.seq ?? undefined;
    for (const one of this.sessions.get(sessionId) ?? []) {
      // Before its page, what comes belongs to the subscription before.
      if (one.seen === undefined) continue;
      if (seq !== undefined) one.seen = Math.max(one.seen, seq);
      try {
        one.listener.update(update);
      } catch (error) {
        console.error("Magy: an update was not understood", update, error); // the others may understand it
      }
    }
  }

  private remove(sessionId: string, heard: Heard): void {
    const all = this.sessions.get(sessionId);
    if (!all?.delete(heard) || all.size) return;
    this.sessions.delete(sessionId);
    if (this.wire.state === "running") {
      this.wire.request("magy/session/unsubscribe", { sessionId }).catch(() => undefined);
    }
  }
}

/** Gives a listener the page, or what of it is new. */
function give(page: SubscribeResult, to: Heard): void {
  const { seen } = to;
  const last = page.events.at(-1)?.seq ?? page.floorSeq - 1;
  const whole = seen === undefined || page.floorSeq > seen + 1;
  to.seen = whole ? last : Math.max(seen, last);
  if (whole) to.listener.page(page, false);
  else to.listener.page({ ...page, events: after(page.events, seen) }, true);
}

function after(events: Update[], seq: number): Update[] {
  return events.filter((event) => event.seq > seq);
}
