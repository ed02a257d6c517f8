import { Socket } from 'node:net';

/** Maximum size of one read in bytes. */
const readBytes = 64 * 1024;

/**
 * Bytes of statements' results that are parsed in one turn of the event loop. A socket that has more goes on in the next
 * one; otherwise a fast server would fill a turn with megabytes.
 */
const maxTurnBytes = 256 * 1024;
let turnBytes = 0;

/** Counts bytes of this turn. @returns whether there may be more */
function mayReadMore(bytes: number): boolean {
  if (turnBytes === 0)
    setImmediate(() => {
      turnBytes = 0;
    });
  turnBytes += bytes;
  return turnBytes < maxTurnBytes;
}

/** Event with the bytes of each read. The next read overwrites them. */
export const transientBytes = 'transientBytes';

/**
 * Creates a socket for a PostgreSQL connection that reuses one read buffer. A server sends a few kilobytes at a time,
 * and allocating memory for each read costs more than all other processing. Listeners of `transientBytes` get the
 * buffer itself; without such a listener, `data` emits a copy, as in any socket, and reading takes turns with everything
 * else that the process does.
 */
export function openReusingSocket(): Socket {
  const memory = Buffer.allocUnsafeSlow(readBytes);
  const socket: Socket = new Socket({
    onread: {
      buffer: memory,
      callback: (size) => {
        const bytes = memory.subarray(0, size);
        if (socket.emit(transientBytes, bytes)) return true;
        socket.emit('data', Buffer.from(bytes));
        if (mayReadMore(size)) return true;
        setImmediate(() => socket.resume());
        return false;
      },
    },
  });
  return socket;
}
