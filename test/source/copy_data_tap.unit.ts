import { PassThrough } from 'node:stream';
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { type CopyDataSink, tapCopyData, transientBytes } from '../../src/source/copy.ts';

/** A protocol message: type, length and payload. */
function message(type: string, payload: Uint8Array): Buffer {
  const head = Buffer.alloc(5);
  head.write(type, 0, 'latin1');
  head.writeInt32BE(payload.length + 4, 1);
  return Buffer.concat([head, payload]);
}

/** Creates a sink that keeps complete payloads. */
function createSink() {
  const taken: Buffer[] = [];
  let open: Buffer[] = [];
  let expected = 0;
  const sink: CopyDataSink = {
    start: (size) => {
      open = [];
      expected = size;
    },
    write: (bytes, start, end) => open.push(Buffer.from(bytes.subarray(start, end))),
    end: () => {
      const payload = Buffer.concat(open);
      expect(payload).toHaveLength(expected);
      taken.push(payload);
    },
  };
  return { sink, taken };
}

/** Creates a stream with a parser that keeps its input. */
function createStream() {
  const stream = new PassThrough();
  const parsed: Buffer[] = [];
  stream.on('data', (bytes: Buffer) => parsed.push(bytes));
  stream.on('error', () => undefined);
  return { stream, parsed };
}

const payload = fc.uint8Array({ minLength: 1, maxLength: 40 });
const anyMessage = fc.record({
  type: fc.constantFrom('d', 'd', 'd', 'd', 'N', 'S', 'C', 'c', 'Z', 'E'),
  payload,
});

describe('tapCopyData', () => {
  it('separates CopyData from other messages, however they are split into reads', () => {
    fc.assert(
      fc.property(
        fc.array(anyMessage),
        fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 1 }),
        fc.constantFrom('data', transientBytes),
        (messages, sizes, event) => {
          const { stream, parsed } = createStream();
          const { sink, taken } = createSink();
          const restore = tapCopyData(stream, sink);
          const bytes = Buffer.concat(messages.map(({ type, payload }) => message(type, payload)));
          // Like a socket that reuses its read buffer.
          const memory = Buffer.alloc(12);
          for (let at = 0, read = 0; at < bytes.length; read += 1) {
            const size = Math.min(sizes[read % sizes.length] ?? 1, bytes.length - at);
            bytes.copy(memory, 0, at, at + size);
            stream.emit(event, memory.subarray(0, size));
            at += size;
          }
          const isCopyData = ({ type }: { type: string }) => type === 'd';
          expect(taken).toEqual(messages.filter(isCopyData).map(({ payload }) => Buffer.from(payload)));
          const others = messages.filter((one) => !isCopyData(one));
          expect(Buffer.concat(parsed)).toEqual(
            Buffer.concat(others.map(({ type, payload }) => message(type, payload))),
          );
          restore();
          stream.emit('data', Buffer.from('after'));
          expect(parsed.at(-1)?.toString()).toBe('after');
        },
      ),
    );
  });

  it('forwards everything after the end of the statement, even in the same read', () => {
    const stream = new PassThrough();
    const parsed: Buffer[] = [];
    const ready = message('Z', Buffer.from('I'));
    const { sink, taken } = createSink();
    let restore = (): void => undefined;
    stream.on('data', (bytes: Buffer) => {
      parsed.push(bytes);
      if (Buffer.concat(parsed).equals(ready)) restore();
    });
    restore = tapCopyData(stream, sink);
    const next = message('d', Buffer.from('not of this COPY'));
    stream.emit('data', Buffer.concat([ready, next]));
    expect(Buffer.concat(parsed)).toEqual(Buffer.concat([ready, next]));
    expect(taken).toEqual([]);
  });

  it.each([
    ['an unknown type', Buffer.from([0x21, 0, 0, 0, 9])],
    ['a length that cannot be', Buffer.from([0x64, 0, 0, 0, 1])],
  ])('destroys the connection at %s', (_, bytes) => {
    const { stream } = createStream();
    tapCopyData(stream, createSink().sink);
    stream.emit('data', bytes);
    expect(stream.errored).toMatchObject({ name: 'ProtocolError' });
  });
});
