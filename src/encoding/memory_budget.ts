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
