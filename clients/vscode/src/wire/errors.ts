/** How a request to the server fails. */

/** An answer that says no. `reason` is the server's word for programs; see docs/protocol.md. */
export class MagyError extends Error {
  constructor(
    message: string,
    readonly code: number,
    readonly reason: string | undefined,
  ) {
    super(message);
  }
}

/** The server ended, or could not start, before it answered. The person is told of that apart. */
export class ServerGone extends Error {}
