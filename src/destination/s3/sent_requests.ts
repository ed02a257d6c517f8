import { AsyncLocalStorage } from 'node:async_hooks';
import { subscribe } from 'node:diagnostics_channel';
import type { ClientRequest } from 'node:http';
import type { Socket } from 'node:net';

/** Whether a request may have reached a server. */
export interface Sending {
  mayHaveArrived: boolean;
}

const current = new AsyncLocalStorage<Sending>();

// The SDK retries requests by itself and reports the last error only, so errors prove nothing.
subscribe('http.client.request.created', (message) => {
  const sending = current.getStore();
  if (!sending) return;
  const markSent = (): void => {
    sending.mayHaveArrived = true;
  };
  (message as { readonly request: ClientRequest }).request.once('socket', (socket: Socket) => {
    if (socket.connecting) socket.once('connect', markSent);
    else markSent();
  });
});

/** Runs `call` and notes in `sending` once one of its HTTP requests has a connection, and could have been sent. */
export const observeSending = <Output>(sending: Sending, call: () => Promise<Output>): Promise<Output> =>
  current.run(sending, call);
