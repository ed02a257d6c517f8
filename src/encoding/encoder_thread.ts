import { parentPort, workerData } from 'node:worker_threads';
import { createBlockMemory } from '../source/copy_out.ts';
import type { ExportedColumn } from '../source/row_selection.ts';
import { readPage } from '../source/read_ranges.ts';
import type { CopiedBlocks } from '../source/source.ts';
import {
  connectToSource,
  type SourceConnectionOptions,
  type SourceConnections,
} from '../source/source_connection.ts';
import { transferReadError } from '../source/transferred_error.ts';
import { encodeBlock } from './encode_block.ts';
import type { EncodingReply, EncodingTask } from './encoder.ts';
import { releaseMemory } from './memory.ts';
import type { JoiningTask } from './parquet/join_row_group.ts';
import { MalformedBlock, UnencodableRow } from './rows.ts';
import type {
  BlockOfThread,
  FromEncoderThread,
  ReadTask,
  ThreadOptions,
  ToEncoderThread,
} from './encoder_threads.ts';

/** The blocks that a thread has read and holds. */
interface HeldBlocks {
  /** Reads a page and holds its blocks. @throws as `readPage` */
  read(task: ReadTask, signal: AbortSignal): Promise<CopiedBlocks<BlockOfThread>>;
  /** A block that is held. */
  get(held: number): Buffer;
  /** Releases a block. Its memory is used for another one. */
  drop(held: number): void;
}

/** @param unusedBlockBytes how much unused memory is kept for the next blocks */
function holdBlocks(unusedBlockBytes: number): HeldBlocks {
  const memory = createBlockMemory(unusedBlockBytes);
  const blocks = new Map<number, Buffer>();
  const connections = new Map<string, SourceConnections>();
  let lastHeld = 0;

  /** Connections are opened with the first page of a source, which in exportd is the only one. */
  const connectionsTo = (source: SourceConnectionOptions): SourceConnections => {
    const key = JSON.stringify(source);
    const open = connections.get(key) ?? connectToSource(source);
    connections.set(key, open);
    return open;
  };

  return {
    async read({ source, page }, signal) {
      const copied = await readPage(connectionsTo(source), page, signal, memory);
      const held = copied.blocks.map(({ block, ...described }) => {
        lastHeld += 1;
        blocks.set(lastHeld, block);
        return { ...described, bytes: block.length, held: lastHeld };
      });
      return { ...copied, blocks: held };
    },
    get(held) {
      const block = blocks.get(held);
      if (!block) throw new RangeError('A block was encoded after its thread released it.');
      return block;
    },
    drop(held) {
      const block = blocks.get(held);
      blocks.delete(held);
      if (block) memory.give(block);
    },
  };
}

const { unusedBlockBytes } = workerData as ThreadOptions;
const held = holdBlocks(unusedBlockBytes);
const reads = new Map<number, AbortController>();
const waiting: (() => Promise<void>)[] = [];

const reply = (message: FromEncoderThread, transfer: ArrayBuffer[] = []): void =>
  parentPort?.postMessage(message, transfer);

/**
 * The program of an encoder thread: reads pages, encodes blocks one by one, and replies to each task. Node runs this file
 * from source, even where the rest of the process was transpiled (Jest). Problems with a block are replies. Any other
 * error, such as a failed allocation, ends the thread and frees its memory.
 */
async function replyTo(task: EncodingTask): Promise<EncodingReply> {
  try {
    return { id: task.id, outcome: 'encoded', ...(await encodeBlock(task)) };
  } catch (error) {
    if (error instanceof UnencodableRow)
      return {
        id: task.id,
        outcome: 'unencodable',
        row: error.row,
        column: error.column,
        reason: error.reason,
      };
    if (error instanceof MalformedBlock) return { id: task.id, outcome: 'malformed', message: error.message };
    throw error;
  }
}

async function encode(task: EncodingTask): Promise<void> {
  const encoded = await replyTo(task);
  reply(encoded, encoded.outcome === 'encoded' ? [encoded.bytes.buffer] : []);
}

async function join(task: JoiningTask): Promise<void> {
  // Only Parquet joins blocks.
  const { joinBlocks } = await import('./parquet/join_row_group.ts');
  const joined = joinBlocks(task);
  for (const { bytes } of task.blocks) releaseMemory(bytes);
  reply({ id: task.id, outcome: 'joined', ...joined }, [joined.bytes.buffer]);
}

/** The columns of warm-up rows: each kind of value that the events of most exports have. */
const warmUpColumns: readonly ExportedColumn[] = [
  { name: 'uuid', type: 'uuid' },
  { name: 'inserted_at', type: 'timestamp' },
  { name: 'event', type: 'text' },
  { name: 'properties', type: 'json' },
  { name: 'distinct_id', type: 'text' },
  { name: 'elements_chain', type: 'text' },
];
const warmUpRows = 4_000;

/** Rows as of `warmUpColumns`, as PostgreSQL's binary COPY sends them. */
function warmUpBlock(): Buffer {
  const field = (value: Buffer): Buffer => {
    const length = Buffer.alloc(4);
    length.writeInt32BE(value.length);
    return Buffer.concat([length, value]);
  };
  const rows = Array.from({ length: warmUpRows }, (_, row) => {
    const [count, uuid, time] = [Buffer.alloc(2), Buffer.alloc(16), Buffer.alloc(8)];
    count.writeInt16BE(warmUpColumns.length);
    uuid.writeUInt32BE(Math.imul(row, 0x9e37_79b1) >>> 0);
    uuid.writeUInt32BE(row, 12);
    time.writeBigInt64BE(BigInt(row) * 1_000n);
    const person = String(row % 97);
    const properties = `\u0001{"$browser": "Chrome", "$session_id": "${String(row % 211)}", "load_ms": ${String(row)}}`;
    const texts = ['$pageview', properties, `user-${person}`, row % 3 === 0 ? '' : 'a.link:text="Prices"'];
    return Buffer.concat([count, ...[uuid, time, ...texts.map((text) => Buffer.from(text))].map(field)]);
  });
  return Buffer.concat(rows);
}

const warmUpFormats: readonly EncodingTask['options'][] = [
  { file_format: 'Parquet', compression: 'zstd', on_bad_row: 'fail' },
  { file_format: 'JSONLines', compression: 'gzip', on_bad_row: 'fail' },
];

/** Encodes a small block in each of the usual formats: the first export finds their code loaded and compiled. */
function warmUp(): void {
  const fingerprint: EncodingTask['fingerprint'] = {
    hash: 'uuid_hash_extended/0',
    width_ms: 60_000,
    origin: '2000-01-01T00:00:00.000Z',
    inserted_at: 1,
    id: 0,
  };
  const block = warmUpBlock();
  for (const options of warmUpFormats)
    encodeLater(async () => {
      await encodeBlock({ options, columns: warmUpColumns, rows: warmUpRows, block, fingerprint });
    });
}

async function read(task: ReadTask): Promise<void> {
  const cancellation = new AbortController();
  reads.set(task.id, cancellation);
  try {
    const page = await held.read(task, cancellation.signal);
    reply({ id: task.id, outcome: 'read', ...page });
  } catch (error) {
    reply({ id: task.id, outcome: 'read_failed', error: transferReadError(error) });
  } finally {
    reads.delete(task.id);
  }
}

/** Encodes one block per turn of the event loop, so that the connections of the thread are read between two blocks. */
async function encodeNext(): Promise<void> {
  await waiting[0]?.();
  waiting.shift();
  if (waiting.length > 0) continueEncoding();
}

const continueEncoding = (): void => {
  setImmediate(() => void encodeNext());
};

function encodeLater(work: () => Promise<void>): void {
  waiting.push(work);
  if (waiting.length === 1) continueEncoding();
}

parentPort?.on('message', (message: ToEncoderThread) => {
  switch (message.type) {
    case 'encode':
      encodeLater(async () => {
        await encode(message);
        releaseMemory(new Uint8Array(message.block.buffer));
      });
      break;
    case 'encode_held':
      encodeLater(async () => {
        await encode({ ...message, block: held.get(message.held) });
        held.drop(message.held);
      });
      break;
    case 'read':
      void read(message);
      break;
    case 'cancel_read':
      reads.get(message.id)?.abort(new Error('The read was cancelled.'));
      break;
    case 'warm_up':
      warmUp();
      break;
    case 'join':
      encodeLater(() => join(message));
      break;
    case 'drop':
      held.drop(message.held);
      break;
  }
});
