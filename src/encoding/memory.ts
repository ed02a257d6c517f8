/** A buffer that grows as needed and is reused from block to block. */
export interface GrowingBuffer {
  bytes: Buffer;
  /** The same memory as `bytes`. */
  view: DataView;
  length: number;
}

/** Creates a buffer with an initial capacity in bytes. */
export function createGrowingBuffer(size: number): GrowingBuffer {
  const bytes = Buffer.allocUnsafeSlow(size);
  return { bytes, view: new DataView(bytes.buffer), length: 0 };
}

/** The capacity is doubled up to this size in bytes. Larger buffers grow to what is needed plus an eighth. */
const maxDoubledSize = 8 * 1024 * 1024;

/** Ensures capacity for `size` more bytes. */
export function reserve(buffer: GrowingBuffer, size: number): void {
  const needed = buffer.length + size;
  if (needed <= buffer.bytes.length) return;
  // A single large value must not take twice its size.
  const larger = Buffer.allocUnsafeSlow(
    Math.ceil(Math.max(needed * 1.125, Math.min(needed, maxDoubledSize) * 2)),
  );
  buffer.bytes.copy(larger, 0, 0, buffer.length);
  buffer.bytes = larger;
  buffer.view = new DataView(larger.buffer);
}

/** Below this size in bytes, a loop is faster than a call into Node. */
const shortCopy = 48;

/** Appends the bytes `[start, end)` of `source`. */
export function appendBytes(target: GrowingBuffer, source: Buffer, start: number, end: number): void {
  reserve(target, end - start);
  const { bytes } = target;
  if (end - start < shortCopy)
    for (let from = start, to = target.length; from < end; from += 1, to += 1) bytes[to] = source[from] ?? 0;
  else source.copy(bytes, target.length, start, end);
  target.length += end - start;
}

/** Bytes that are appended often, as 32-bit words. The last word is padded with zeros. */
interface FixedBytes {
  readonly words: Int32Array;
  readonly length: number;
}

/** Prepares bytes that are appended often. */
export function prepareFixedBytes(bytes: Buffer): FixedBytes {
  const padded = Buffer.alloc(Math.ceil(bytes.length / 4) * 4);
  bytes.copy(padded);
  const words = Int32Array.from({ length: padded.length / 4 }, (_, index) => padded.readInt32LE(index * 4));
  return { words, length: bytes.length };
}

/** Appends prepared bytes word by word. */
export function appendFixed(target: GrowingBuffer, { words, length }: FixedBytes): void {
  reserve(target, words.length * 4);
  const { view } = target;
  for (let word = 0, to = target.length; word < words.length; word += 1, to += 4)
    view.setInt32(to, words[word] ?? 0, true);
  target.length += length;
}

/**
 * Releases the buffer of these bytes immediately if nothing else uses it; they are empty afterwards. Blocks are large
 * and produce little other garbage, so the garbage collector would let many of them accumulate.
 */
export function releaseMemory({ buffer, byteLength }: Uint8Array): void {
  if (buffer instanceof ArrayBuffer && buffer.byteLength === byteLength) buffer.transfer(0);
}

/**
 * The memory reserved for one key range: rows between reading and encoding, then encoded bytes until they have been
 * sent.
 */
export interface MemoryReservation {
  /**
   * Reserves memory for rows that are about to be read. Waits for room behind earlier requests, unless this
   * reservation holds no rows: the bytes it has collected for a part are only sent when more rows arrive, so waiting
   * could deadlock.
   * @throws the signal's reason when it is aborted
   */
  reserveRows(bytes: number, signal: AbortSignal): Promise<void>;
  /** Releases rows that are gone or were fewer than reserved. A negative number reserves more without waiting. */
  releaseRows(bytes: number): void;
  /** Reserves encoded bytes without waiting, because they exist already. */
  reserveEncoded(bytes: number): void;
  releaseEncoded(bytes: number): void;
  /** Whether the process exceeds its budget, so that buffered data should be sent first. */
  isOverBudget(): boolean;
  /** Releases everything. The reservation cannot be used afterwards. */
  close(): void;
}

/** The memory budget for rows and encoded bytes of all runs of a process. */
export interface MemoryBudget {
  openReservation(): MemoryReservation;
  /** The bytes that are reserved now. */
  held(): number;
}

interface ReservationState {
  rows: number;
  encoded: number;
  closed: boolean;
}

interface PendingRequest {
  readonly reservation: ReservationState;
  readonly bytes: number;
  readonly grant: () => void;
}

/** Creates a budget of `limit` bytes. The limit is soft: every reservation may always hold some rows. */
export function createMemoryBudget(limit: number): MemoryBudget {
  let held = 0;
  let waiting: PendingRequest[] = [];

  /** Grants pending requests in order of arrival. A reservation without rows does not wait for earlier requests. */
  const serve = (): void => {
    let blocked = false;
    const left: PendingRequest[] = [];
    for (const request of waiting) {
      const { reservation, bytes, grant } = request;
      blocked ||= held + bytes > limit;
      if (blocked && reservation.rows > 0) left.push(request);
      else {
        change(reservation, 'rows', bytes);
        grant();
      }
    }
    waiting = left;
  };

  const change = (reservation: ReservationState, kind: 'rows' | 'encoded', bytes: number): void => {
    if (reservation.closed) return;
    reservation[kind] += bytes;
    held += bytes;
  };

  return {
    held: () => held,
    openReservation() {
      const reservation: ReservationState = { rows: 0, encoded: 0, closed: false };
      const release = (kind: 'rows' | 'encoded', bytes: number): void => {
        change(reservation, kind, -bytes);
        serve();
      };
      return {
        reserveRows: (bytes, signal) => waitForRoom(reservation, bytes, signal),
        releaseRows: (bytes) => release('rows', bytes),
        reserveEncoded: (bytes) => change(reservation, 'encoded', bytes),
        releaseEncoded: (bytes) => release('encoded', bytes),
        isOverBudget: () => held > limit,
        close: () => {
          release('rows', reservation.rows);
          release('encoded', reservation.encoded);
          reservation.closed = true;
        },
      };
    },
  };

  async function waitForRoom(
    reservation: ReservationState,
    bytes: number,
    signal: AbortSignal,
  ): Promise<void> {
    signal.throwIfAborted();
    const granted = Promise.withResolvers<undefined>();
    const request = { reservation, bytes, grant: () => granted.resolve(undefined) };
    const abort = (): void => {
      waiting = waiting.filter((one) => one !== request);
      granted.reject(signal.reason);
      serve();
    };
    signal.addEventListener('abort', abort);
    waiting.push(request);
    serve();
    try {
      await granted.promise;
    } finally {
      signal.removeEventListener('abort', abort);
    }
  }
}
