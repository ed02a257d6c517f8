import { AsyncLocalStorage } from 'node:async_hooks';
import { subscribe } from 'node:diagnostics_channel';
import type { ClientRequest } from 'node:http';
import type { Socket } from 'node:net';

/** What may have reached a server. */
export interface Sending {
  /** Whether a request may have, also one for credentials. */
  mayHaveArrived: boolean;
  /** How many requests to write the object may have. */
  writes: number;
}

const current = new AsyncLocalStorage<Sending>();

// The SDK retries requests by itself and reports the last error only, so errors prove nothing.
subscribe('http.client.request.created', (message) => {
  const sending = current.getStore();
  if (!sending) return;
  const { request } = message as { readonly request: ClientRequest };
  // The SDK names the operation in the address.
  const isWrite = request.path.includes('x-id=PutObject');
  const markSent = (): void => {
    sending.mayHaveArrived = true;
    if (isWrite) sending.writes += 1;
  };
  request.once('socket', (socket: Socket) => {
    if (socket.connecting) socket.once('connect', markSent);
    else markSent();
  });
});

/** Runs `call` and notes in `sending` which of its HTTP requests had a connection, and could have been sent. */
export const observeSending = <Output>(sending: Sending, call: () => Promise<Output>): Promise<Output> =>
  current.run(sending, call);
