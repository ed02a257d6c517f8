import { createHash } from 'node:crypto';
import { once } from 'node:events';
import {
  Agent,
  createServer,
  request as httpRequest,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http';
import { s3OperationOf, type S3Operation } from './s3_operation.ts';

/** A request on its way through the proxy, and how far it has come. */
export interface ProxiedRequest extends S3Operation {
  /** Bytes of its body that have come from the client. */
  received: number;
  /** SHA-256 of the body once it is whole. */
  digest: string | null;
  /** The body, but for a part's. */
  text: string | null;
  /** Status of the server's answer, once there is one. */
  status: number | null;
  /** Whether it has come to an end, one way or another. */
  ended: boolean;
}

/** What happens instead of going on: the connection breaks, or the client gets this answer. */
export type Instead = 'broken' | { readonly status: number; readonly body: string };

interface Answer {
  readonly status: number;
  /** Names and values in turn, as they came. */
  readonly headers: string[];
  readonly body: Buffer;
}

type Body = AsyncIterable<Buffer> | readonly Buffer[];

const xmlHeaders = ['content-type', 'application/xml'];

type Step = (request: ProxiedRequest) => Promise<Instead | undefined> | Instead | undefined;

/** Gets between client and server; each step may wait as long as it likes. */
export interface Intervention {
  /** Before anything of the request reaches the server. */
  readonly before?: Step;
  /** Each time a piece of the body has come, before it is passed on. */
  readonly passing?: (request: ProxiedRequest, bytes: number) => Promise<Instead | undefined> | undefined;
  /** The server has answered; the client does not know it yet. */
  readonly answered?: Step;
}

/** An S3 server as its clients see it through a way that a test can watch and disturb. */
export interface S3Proxy {
  /** Address to use in place of the server's. */
  readonly endpoint: string;
  /** Every request so far, in the order of their arrival. */
  readonly requests: readonly ProxiedRequest[];
  /** Gets between from now on, behind what got between before. @returns a function that ends it. */
  intervene(intervention: Intervention): () => void;
  close(): Promise<void>;
}

/** Opens a proxy on a free port of the loopback address. Signatures stay good: the host that was signed is passed on. */
export async function createS3Proxy(endpoint: string): Promise<S3Proxy> {
  const target = new URL(endpoint);
  const agent = new Agent({ keepAlive: true });
  const requests: ProxiedRequest[] = [];
  const interventions = new Set<Intervention>();

  const step = async (name: 'before' | 'answered', proxied: ProxiedRequest): Promise<Instead | undefined> => {
    for (const intervention of interventions) {
      const instead = await intervention[name]?.(proxied);
      if (instead) return instead;
    }
    return undefined;
  };

  /** Passes the body on piece by piece, at the pace of the slower side. */
  const passBody = async (
    proxied: ProxiedRequest,
    body: Body,
    upstream: ReturnType<typeof httpRequest>,
  ): Promise<Instead | undefined> => {
    const hash = createHash('sha256');
    const closed = new Promise((resolve) => upstream.once('close', resolve));
    for await (const piece of body) {
      hash.update(piece);
      proxied.received += piece.length;
      for (const { passing } of interventions) {
        const instead = await passing?.(proxied, piece.length);
        if (instead) return instead;
      }
      // A server that answered early or broke the connection takes no more; what became of it, its answer says.
      if (upstream.destroyed || upstream.write(piece)) continue;
      await Promise.race([new Promise((resolve) => upstream.once('drain', resolve)), closed]);
    }
    proxied.digest = hash.digest('hex');
    return undefined;
  };

  const forward = async (
    proxied: ProxiedRequest,
    incoming: IncomingMessage,
    body: Body,
  ): Promise<Instead | Answer> => {
    const upstream = httpRequest({
      agent,
      host: target.hostname,
      port: target.port,
      method: incoming.method,
      path: incoming.url,
      headers: headersOf(incoming),
      setHost: false,
    });
    // Nobody else listens once an answer has begun: a connection that breaks behind it would end the process.
    upstream.on('error', () => undefined);
    const answering = once(upstream, 'response') as Promise<[IncomingMessage]>;
    // Awaited after the body; a server that answers early or breaks the connection is heard of then.
    answering.catch(() => undefined);
    try {
      const instead = await passBody(proxied, body, upstream);
      if (instead) {
        upstream.destroy();
        return instead;
      }
      upstream.end();
      const [answer] = await answering;
      const { statusCode = 0, rawHeaders } = answer;
      return { status: statusCode, headers: rawHeaders, body: Buffer.concat(await wholeBody(answer)) };
    } catch (error) {
      upstream.destroy();
      throw error;
    }
  };

  const answerTo = async (proxied: ProxiedRequest, incoming: IncomingMessage): Promise<Instead | Answer> => {
    const body = proxied.operation === 'UploadPart' ? incoming : await wholeBody(incoming);
    if (Array.isArray(body)) proxied.text = Buffer.concat(body).toString();
    const refused = await step('before', proxied);
    if (refused) return refused;
    const forwarded = await forward(proxied, incoming, body);
    if (forwarded === 'broken' || !('headers' in forwarded)) return forwarded;
    proxied.status = forwarded.status;
    return (await step('answered', proxied)) ?? forwarded;
  };

  const handle = async (incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> => {
    const proxied: ProxiedRequest = {
      ...s3OperationOf(incoming.method ?? '', incoming.url ?? ''),
      received: 0,
      digest: null,
      text: null,
      status: null,
      ended: false,
    };
    requests.push(proxied);
    const { socket } = incoming;
    try {
      const answer = await answerTo(proxied, incoming);
      if (answer === 'broken') socket.resetAndDestroy();
      else {
        // What is left of the body has to be taken, or the client never reads the answer.
        incoming.resume();
        outgoing.writeHead(answer.status, 'headers' in answer ? answer.headers : xmlHeaders);
        outgoing.end(answer.body);
      }
    } catch {
      socket.destroy();
    } finally {
      proxied.ended = true;
    }
  };

  const server = createServer((incoming, outgoing) => void handle(incoming, outgoing));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (typeof address !== 'object' || address === null) throw new Error('The proxy has no address.');
  return {
    endpoint: `http://127.0.0.1:${String(address.port)}`,
    requests,
    intervene: (intervention) => {
      interventions.add(intervention);
      return () => interventions.delete(intervention);
    },
    close: async () => {
      server.closeAllConnections();
      agent.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Of a request it is taken at once, so that a small request is there whole although its client dies while it waits. */
async function wholeBody(incoming: IncomingMessage): Promise<Buffer[]> {
  const pieces: Buffer[] = [];
  for await (const piece of incoming as AsyncIterable<Buffer>) pieces.push(piece);
  return pieces;
}

/** As they came, but for the wait for permission to send a body, which this proxy gives itself. */
const headersOf = ({ rawHeaders }: IncomingMessage): string[] =>
  rawHeaders.filter((_, index) => rawHeaders[index - (index % 2)]?.toLowerCase() !== 'expect');
