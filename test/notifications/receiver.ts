import { createHmac } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { startFakeServer } from '../destination/fake_server.ts';

/** A message that a receiver got. */
interface Message {
  /** The header `webhook-id`. */
  readonly id: string;
  readonly path: string;
  readonly type: string;
  readonly timestamp: string;
  readonly data: Readonly<Record<string, unknown>>;
  /** Whether the body is signed with the receiver's secret, as computed here. */
  readonly signed: boolean;
}

/** A receiver of webhooks on the loopback address. */
export interface Receiver {
  readonly url: string;
  readonly messages: readonly Message[];
  /** Returns the status to respond with; null keeps the sender waiting. */
  respond: (message: Message) => number | null;
  /** Closes the connections of the senders that wait. */
  disconnect(): void;
  close(): Promise<void>;
}

/** Starts a receiver that responds with 200 until `respond` is replaced. */
export async function startReceiver(secret: string): Promise<Receiver> {
  const key = Buffer.from(secret.slice('whsec_'.length), 'base64');
  const messages: Message[] = [];
  const waiting = new Set<ServerResponse>();
  const state: Pick<Receiver, 'respond'> = { respond: () => 200 };
  const server = await startFakeServer(({ headers, body, path }, response) => {
    const id = String(headers['webhook-id']);
    const signature = createHmac('sha256', key)
      .update(`${id}.${String(headers['webhook-timestamp'])}.${body}`)
      .digest('base64');
    const parsed = JSON.parse(body) as Pick<Message, 'type' | 'timestamp' | 'data'> & { id: string };
    const signed = headers['webhook-signature'] === `v1,${signature}` && parsed.id === id;
    const message = { ...parsed, id, path, signed };
    messages.push(message);
    const status = state.respond(message);
    if (status === null) waiting.add(response);
    else response.writeHead(status).end();
  });
  return {
    url: server.endpoint,
    messages,
    get respond() {
      return state.respond;
    },
    set respond(respond) {
      state.respond = respond;
    },
    disconnect: () => {
      for (const response of waiting) response.destroy();
      waiting.clear();
    },
    close: () => server.close(),
  };
}
