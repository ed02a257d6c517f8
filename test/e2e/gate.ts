import { connect, createServer, type Socket } from 'node:net';

/** A way to a server that can be shut: what stands behind it then looks stopped. */
export interface Gate {
  /** Address to use in place of the server's. */
  readonly endpoint: string;
  /** Connections that were turned away while it was shut. */
  turnedAway(): number;
  /** Bytes that went through to the server. */
  bytesIn(): number;
  shut(): void;
  open(): void;
  close(): Promise<void>;
}

/** Opens a gate on a free port of the loopback address in front of an HTTP server. */
export async function createGate(endpoint: string): Promise<Gate> {
  const target = new URL(endpoint);
  const sockets = new Set<Socket>();
  let isOpen = true;
  let turnedAway = 0;
  let bytesIn = 0;
  const server = createServer((client) => {
    if (!isOpen) {
      turnedAway += 1;
      client.resetAndDestroy();
      return;
    }
    const upstream = connect(Number(target.port), target.hostname);
    for (const [socket, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(socket);
      socket.on('error', () => other.destroy());
      socket.on('close', () => {
        sockets.delete(socket);
        other.destroy();
      });
      socket.pipe(other);
    }
    client.on('data', (chunk) => (bytesIn += chunk.length));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (typeof address !== 'object' || address === null) throw new Error('The gate has no address.');
  return {
    endpoint: `http://127.0.0.1:${String(address.port)}`,
    turnedAway: () => turnedAway,
    bytesIn: () => bytesIn,
    shut: () => {
      isOpen = false;
      for (const socket of sockets) socket.resetAndDestroy();
    },
    open: () => {
      isOpen = true;
    },
    close: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
