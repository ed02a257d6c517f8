import { createHmac } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { startWebServer } from '../destination/s3/web_server.ts';

/** A message as a receiver of webhooks got it. */
export interface Message {
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
  /** What it answers; null keeps the sender waiting. */
  answer: (message: Message) => number | null;
  /** Breaks the connections of those that wait. */
  letGo(): void;
  close(): Promise<void>;
}

/** Starts a receiver that takes everything, until it is told otherwise. */
export async function startReceiver(secret: string): Promise<Receiver> {
  const key = Buffer.from(secret.slice('whsec_'.length), 'base64');
  const messages: Message[] = [];
  const waiting = new Set<ServerResponse>();
  const state: Pick<Receiver, 'answer'> = { answer: () => 200 };
  const server = await startWebServer(({ headers, body, path }, response) => {
    const id = String(headers['webhook-id']);
    const signature = createHmac('sha256', key)
      .update(`${id}.${String(headers['webhook-timestamp'])}.${body}`)
      .digest('base64');
    const parsed = JSON.parse(body) as Pick<Message, 'type' | 'timestamp' | 'data'> & { id: string };
    const signed = headers['webhook-signature'] === `v1,${signature}` && parsed.id === id;
    const message = { ...parsed, id, path, signed };
    messages.push(message);
    const status = state.answer(message);
    if (status === null) waiting.add(response);
    else response.writeHead(status).end();
  });
  return {
    url: server.endpoint,
    messages,
    get answer() {
      return state.answer;
    },
    set answer(answer) {
      state.answer = answer;
    },
    letGo: () => {
      for (const response of waiting) response.destroy();
      waiting.clear();
    },
    close: () => server.close(),
  };
}
