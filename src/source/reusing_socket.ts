import { Socket } from 'node:net';

/** Maximum size of one read in bytes. */
const readBytes = 64 * 1024;

/** Event with the bytes of each read. The next read overwrites them. */
export const transientBytes = 'transientBytes';

/**
 * Creates a socket for a PostgreSQL connection that reuses one read buffer. A server sends a few kilobytes at a time,
 * and allocating memory for each read costs more than all other processing. Listeners of `transientBytes` get the
 * buffer itself; without such a listener, `data` emits a copy, as in any socket.
 */
export function openReusingSocket(): Socket {
  const memory = Buffer.allocUnsafeSlow(readBytes);
  const socket: Socket = new Socket({
    onread: {
      buffer: memory,
      callback: (size) => {
        const bytes = memory.subarray(0, size);
        if (!socket.emit(transientBytes, bytes)) socket.emit('data', Buffer.from(bytes));
        return true;
      },
    },
  });
  return socket;
}
