/** Reads the data of COPY from a socket, without copying it into the client of PostgreSQL. */
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';

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

/** The server sent bytes that are not a message of PostgreSQL's protocol. The connection is unusable. */
export class ProtocolError extends Error {
  override readonly name = 'ProtocolError';
}

/** Receives the payload of CopyData messages in chunks. */
export interface CopyDataSink {
  /** A message with a payload of `size` bytes starts. */
  start(size: number): void;
  /** The next bytes of the message. Copy them before returning. */
  write(bytes: Buffer, start: number, end: number): void;
  /** The message is complete. */
  end(): void;
}

const copyData = 0x64;
/**
 * Messages that a server may send while a statement runs: errors, notices, start and end of COPY, end of the
 * statement.
 */
const otherMessages: ReadonlySet<number> = new Set(Buffer.from('HcCZENSA'));
/** Message type and length. */
const headerLength = 5;

/**
 * Intercepts a connection in front of pg's parser while a COPY runs: CopyData goes to the sink, all other messages go
 * to the parser, which sees a COPY without rows. The parser would create two objects and an event per row.
 * @returns removes the tap; call it when the parser has seen the end of the statement.
 */
export function tapCopyData(stream: Duplex, sink: CopyDataSink): () => void {
  const parsers = stream.listeners('data') as ((bytes: Buffer) => void)[];
  /** A header that arrives in several chunks. */
  const header = Buffer.alloc(headerLength);
  let headerRead = 0;
  /** Bytes of the current message that have not arrived yet. */
  let left = 0;
  let isCopyData = false;
  let active = true;

  /** Copies the bytes, because the parser may keep a reference to them. */
  const forward = (bytes: Buffer, start: number, end: number): void => {
    if (start === end) return;
    const copy = Buffer.from(bytes.subarray(start, end));
    for (const parse of parsers) parse.call(stream, copy);
  };

  /** @returns the offset of the payload. */
  const startMessage = (bytes: Buffer, at: number): number => {
    const type = bytes[at] ?? 0;
    left = bytes.readInt32BE(at + 1) - 4;
    isCopyData = type === copyData;
    if (left < 0 || (!isCopyData && !otherMessages.has(type)))
      throw new ProtocolError('The source sent a message that is not part of the PostgreSQL protocol.');
    if (isCopyData) sink.start(left);
    else forward(bytes, at, at + headerLength);
    return at + headerLength;
  };

  const collectHeader = (bytes: Buffer, at: number): number => {
    const copied = bytes.copy(header, headerRead, at, at + headerLength - headerRead);
    headerRead += copied;
    if (headerRead === headerLength) {
      headerRead = 0;
      startMessage(header, 0);
    }
    return at + copied;
  };

  const continueMessage = (bytes: Buffer, at: number): number => {
    const end = Math.min(bytes.length, at + left);
    left -= end - at;
    if (!isCopyData) forward(bytes, at, end);
    else {
      sink.write(bytes, at, end);
      if (left === 0) sink.end();
    }
    return end;
  };

  const onBytes = (bytes: Buffer): void => {
    let at = 0;
    try {
      while (at < bytes.length && active)
        if (left > 0) at = continueMessage(bytes, at);
        else if (headerRead === 0 && at + headerLength <= bytes.length) at = startMessage(bytes, at);
        else at = collectHeader(bytes, at);
      forward(bytes, at, bytes.length);
    } catch (error) {
      restore();
      stream.destroy(error instanceof Error ? error : new ProtocolError(String(error)));
    }
  };

  const restore = (): void => {
    if (!active) return;
    active = false;
    for (const event of ['data', transientBytes]) stream.off(event, onBytes);
    for (const parse of parsers) stream.on('data', parse);
  };

  for (const event of ['data', transientBytes]) stream.on(event, onBytes);
  for (const parse of parsers) stream.off('data', parse);
  return restore;
}
