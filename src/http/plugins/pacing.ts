import type { FastifyInstance } from 'fastify';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { createTurns } from '../../concurrency/keyed_semaphore.ts';
import { bounds } from '../../config/bounds.ts';

/** Bounds the connections of a server, has them take turns, and closes those that are unused with the application. */
export function paceConnections(app: FastifyInstance): void {
  app.server.maxConnections = bounds.connections.max;
  closeUnusedConnections(app);
  takeTurns(app.server);
}

/**
 * Closes connections that never sent anything, such as those that browsers open in advance. Node counts them neither among
 * idle ones nor, once it closes, among those that take too long, so that closing would wait for their clients.
 */
function closeUnusedConnections(app: FastifyInstance): void {
  const connections = new Set<Socket>();
  app.server.on('connection', (socket: Socket) => {
    connections.add(socket);
    socket.once('close', () => connections.delete(socket));
  });
  app.addHook('preClose', (done) => {
    for (const socket of connections) if (socket.bytesRead === 0) socket.destroy();
    done();
  });
}

/** What Node's parser gets at once: about ten of the shortest requests. */
const headBytes = 512;
/** The same within the body of a request. */
const bodyBytes = 16_384;
/** How many slices are parsed before other events of the process have their turn. */
const slicesOfTurn = 4;

/**
 * Makes the connections of a server take turns. Node reads 64 KiB at a time and starts every request in it before anything
 * else happens, so 20 connections with 1,000 pipelined requests each would silence the server for over a second. Here a
 * connection hands over a slice, then the next connection its slice. What does not fit waits until the requests before it
 * are answered, and its connection is not read.
 */
function takeTurns(server: Server): void {
  const paces = new WeakMap<Socket, Pace>();
  const wait = createTurns(slicesOfTurn);
  server.on('connection', (socket: Socket) => {
    paces.set(socket, paceConnection(socket, wait));
  });
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    paces.get(request.socket)?.began(request, response);
  });
}

/** The pace of a connection. */
interface Pace {
  /** A request has arrived, up to its body. */
  began(request: IncomingMessage, response: ServerResponse): void;
}

/** Splits what a connection reads into slices. `wait` calls back when it is the turn of the next slice. */
function paceConnection(socket: Socket, wait: (handOver: () => void) => void): Pace {
  const push = socket.push.bind(socket);
  const read = socket._read.bind(socket);
  let rest: Buffer = Buffer.alloc(0);
  let waits = false;
  let unanswered = 0;
  let newest: IncomingMessage | undefined;
  const isInBody = () => newest?.complete === false;
  const handOver = () => {
    waits = false;
    // A connection whose responses are not read is paused by Node; it resumes with the event.
    if (socket.destroyed || socket.isPaused() || (unanswered > 0 && !isInBody())) return;
    const bytes = isInBody() ? bodyBytes : headBytes;
    const slice = rest.subarray(0, bytes);
    rest = rest.subarray(bytes);
    push(slice);
  };
  const takeTurn = () => {
    if (waits || rest.length === 0) return;
    waits = true;
    wait(handOver);
  };
  socket.push = (chunk: Buffer | null) => {
    if (chunk === null || chunk.length <= headBytes) return push(chunk);
    rest = chunk;
    takeTurn();
    return false;
  };
  socket._read = (size) => {
    if (rest.length === 0) read(size);
    else takeTurn();
  };
  socket.on('resume', takeTurn);
  // With a listener of its own, Node's parser takes the data of the stream instead of reading the socket itself.
  socket.on('data', () => undefined);
  return {
    began: (request, response) => {
      newest = request;
      unanswered += 1;
      response.once('close', () => {
        unanswered -= 1;
        takeTurn();
      });
    },
  };
}
