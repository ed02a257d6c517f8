/** Cuts the bytes of a file into parts, and knows which rows end in which part. */
import { crc32 } from 'node:zlib';
import type { BlockCut, PlannedPart } from '../domain/exported_files.ts';
import type { SortKey } from '../domain/sort_key.ts';
import { addFingerprints, type Fingerprint } from '../domain/fingerprint.ts';
import { formatCrc32 } from '../encoding/compression.ts';
import type { EncodedBlock, FileAssembly } from '../encoding/encoder.ts';
import { releaseMemory } from '../encoding/memory.ts';

/** A part with its bytes. */
export interface BuiltPart {
  readonly part: PlannedPart;
  readonly body: Buffer;
}

/** Cuts the bytes of a file into parts, and counts the rows of a block with the part in which the block ends. */
interface PartBuilder {
  /** Bytes that no part has yet. */
  readonly length: number;
  /** Whether no part has yet some rows, also rejected ones. */
  hasRows(): boolean;
  /**
   * Adds a block with the bytes that it adds to the file. Take parts until `length` is below their size before the next
   * call. `cut`: which of these bytes earlier parts have, when a file is resumed inside the block.
   */
  addBlock(block: EncodedBlock, bytes: Buffer, cut: BlockCut | null): void;
  /** Adds the bytes that end the file. */
  addTrailer(bytes: Buffer): void;
  /** Makes a part of the next bytes. */
  take(length: number, part: { readonly part_number: number; readonly final: boolean }): BuiltPart;
}

/** Rows of the blocks that end in the next part. */
type EndedRows = Pick<PlannedPart, 'rows' | 'rejected' | 'fingerprint' | 'first' | 'last'>;

/** The last block, as long as some of its bytes are in no part. */
interface OpenBlock {
  readonly block: EncodedBlock;
  readonly after: SortKey | null;
  /** Bytes of the block in parts, their CRC-32, and the bytes that are in none. */
  skip: number;
  crc32: number;
  left: number;
}

/**
 * @param after the key after which the first block starts
 * @param emptyFingerprint the fingerprint of a part without rows
 */
export function createPartBuilder(
  assembly: Pick<FileAssembly, 'takeState'>,
  after: SortKey | null,
  emptyFingerprint: Fingerprint,
): PartBuilder {
  const nothing: EndedRows = {
    rows: 0,
    rejected: 0,
    fingerprint: emptyFingerprint,
    first: null,
    last: null,
  };
  const queue = createByteQueue();
  let ended = nothing;
  let open: OpenBlock | null = null;
  let lastKey = after;
  let hasTrailer = false;

  const endBlock = (): void => {
    if (!open) return;
    const { block } = open;
    ended = {
      rows: ended.rows + block.rows,
      rejected: ended.rejected + block.rejected.length,
      fingerprint: addFingerprints(ended.fingerprint, block.fingerprint),
      first: ended.first ?? block.first,
      last: block.last,
    };
    open = null;
  };

  /** Accounts for the end of a part. The open block is the last one, so what is left in the queue belongs to it. */
  const cutBlock = (body: Buffer): BlockCut | null => {
    if (!open || hasTrailer || queue.length === 0) {
      endBlock();
      return null;
    }
    const consumed = open.left - queue.length;
    open.crc32 = crc32(body.subarray(body.length - consumed), open.crc32);
    open.skip += consumed;
    open.left = queue.length;
    const { joined, last } = open.block;
    return {
      after: open.after,
      last,
      ...(joined && { joined }),
      skip: open.skip,
      crc32: formatCrc32(open.crc32),
    };
  };

  return {
    get length() {
      return queue.length;
    },
    hasRows: () => open !== null || ended.rows > 0 || ended.rejected > 0,
    addBlock: (block, bytes, cut) => {
      endBlock();
      const skip = cut?.skip ?? 0;
      open = {
        block,
        after: lastKey,
        skip,
        crc32: cut ? Number.parseInt(cut.crc32, 16) : 0,
        left: bytes.length - skip,
      };
      lastKey = block.last;
      queue.push(bytes.subarray(skip));
    },
    addTrailer: (bytes) => {
      // A part is taken as soon as there are enough bytes, so the next one ends in the trailer or after it.
      hasTrailer = true;
      queue.push(bytes);
    },
    take: (length, { part_number, final }) => {
      const body = queue.take(length);
      const cut = cutBlock(body);
      const part: PlannedPart = {
        part_number,
        ...ended,
        bytes: body.length,
        crc32: formatCrc32(crc32(body)),
        encoder_state: assembly.takeState({ exceptLast: cut !== null }),
        ...(cut && { cut }),
        ...(!final && hasTrailer && queue.length > 0 && { in_trailer: true }),
        ...(final && { final }),
      };
      ended = nothing;
      return { part, body };
    },
  };
}

/** Bytes that wait for the next part. */
interface ByteQueue {
  readonly length: number;
  push(bytes: Buffer): void;
  /** Takes bytes from the front as one buffer, and releases the buffers that are used up. */
  take(length: number): Buffer;
}

/** Creates an empty queue. It owns the buffers that are pushed. */
function createByteQueue(): ByteQueue {
  let chunks: Buffer[] = [];
  /** How many bytes of the first chunk were taken. */
  let taken = 0;
  let length = 0;
  return {
    get length() {
      return length;
    },
    push: (bytes) => {
      if (bytes.length > 0) chunks.push(bytes);
      length += bytes.length;
    },
    take: (wanted) => {
      const body = Buffer.allocUnsafeSlow(wanted);
      let filled = 0;
      let used = 0;
      for (const chunk of chunks) {
        if (filled === wanted) break;
        const copied = chunk.copy(body, filled, taken, taken + wanted - filled);
        filled += copied;
        taken += copied;
        if (taken < chunk.length) break;
        used += 1;
        taken = 0;
      }
      for (const chunk of chunks.slice(0, used)) releaseMemory(chunk);
      chunks = chunks.slice(used);
      length -= filled;
      return body;
    },
  };
}
