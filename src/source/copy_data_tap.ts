import type { Duplex } from 'node:stream';
import { transientBytes } from './reading_socket.ts';

/** What came from the server is no message of PostgreSQL's protocol; the connection cannot be used any more. */
export class ProtocolError extends Error {
  override readonly name = 'ProtocolError';
}

/** Takes the payload of CopyData messages, in pieces as they arrive. */
export interface CopyDataSink {
  /** A message of `size` bytes begins. */
  begin(size: number): void;
  /** The next bytes of the message; they have to be copied before this returns. */
  write(bytes: Buffer, start: number, end: number): void;
  /** The message is whole. */
  end(): void;
}

const copyData = 0x64;
/** What a server may send while a statement runs: errors, notices, the stages of a COPY, the end of the statement. */
const otherMessages: ReadonlySet<number> = new Set(Buffer.from('HcCZENSA'));
/** Type and length. */
const headLength = 5;

/**
 * Puts itself between a connection and pg's parser while a COPY runs: CopyData goes to the sink, every other message on
 * to the parser, which so sees a COPY without rows. The parser would make two objects and an event of every row.
 * @returns takes itself out again; to be called when the parser has seen the end of the statement.
 */
export function tapCopyData(stream: Duplex, sink: CopyDataSink): () => void {
  const parsers = stream.listeners('data') as ((bytes: Buffer) => void)[];
  /** A head that did not arrive at once. */
  const head = Buffer.alloc(headLength);
  let headRead = 0;
  /** Bytes of the message that are still to come. */
  let left = 0;
  let isCopyData = false;
  let diverting = true;

  /** The parser may keep what it is given. */
  const pass = (bytes: Buffer, start: number, end: number): void => {
    if (start === end) return;
    const passed = Buffer.from(bytes.subarray(start, end));
    for (const parse of parsers) parse.call(stream, passed);
  };

  /** @returns where the message goes on, behind its head. */
  const beginMessage = (bytes: Buffer, at: number): number => {
    const type = bytes[at] ?? 0;
    left = bytes.readInt32BE(at + 1) - 4;
    isCopyData = type === copyData;
    if (left < 0 || (!isCopyData && !otherMessages.has(type)))
      throw new ProtocolError('The source sent what is no message of its protocol.');
    if (isCopyData) sink.begin(left);
    else pass(bytes, at, at + headLength);
    return at + headLength;
  };

  const gatherHead = (bytes: Buffer, at: number): number => {
    const copied = bytes.copy(head, headRead, at, at + headLength - headRead);
    headRead += copied;
    if (headRead === headLength) {
      headRead = 0;
      beginMessage(head, 0);
    }
    return at + copied;
  };

  const goOn = (bytes: Buffer, at: number): number => {
    const end = Math.min(bytes.length, at + left);
    left -= end - at;
    if (!isCopyData) pass(bytes, at, end);
    else {
      sink.write(bytes, at, end);
      if (left === 0) sink.end();
    }
    return end;
  };

  const divert = (bytes: Buffer): void => {
    let at = 0;
    try {
      while (at < bytes.length && diverting)
        if (left > 0) at = goOn(bytes, at);
        else if (headRead === 0 && at + headLength <= bytes.length) at = beginMessage(bytes, at);
        else at = gatherHead(bytes, at);
      pass(bytes, at, bytes.length);
    } catch (error) {
      restore();
      stream.destroy(error instanceof Error ? error : new ProtocolError(String(error)));
    }
  };

  const restore = (): void => {
    if (!diverting) return;
    diverting = false;
    for (const event of ['data', transientBytes]) stream.off(event, divert);
    for (const parse of parsers) stream.on('data', parse);
  };

  for (const event of ['data', transientBytes]) stream.on(event, divert);
  for (const parse of parsers) stream.off('data', parse);
  return restore;
}
