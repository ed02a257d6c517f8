import { Socket } from 'node:net';

/** What one read of a socket can bring. */
const readBytes = 64 * 1024;

/** Told the bytes of each read; they are overwritten by the next one. */
export const transientBytes = 'transientBytes';

/**
 * A socket for a connection to PostgreSQL that reads into the same memory again and again: a server sends a few
 * kilobytes at a time, and an allocation for each costs more than everything else that is done with them. Who listens
 * to `transientBytes` gets the bytes themselves; as long as nobody does, `data` tells a copy as of any other socket.
 */
export function openReadingSocket(): Socket {
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
