/**
 * The memory that one stretch of rows takes on its way through the process: as rows between reading and encoding, then
 * as encoded bytes until they have been sent.
 */
export interface MemoryReservation {
  /**
   * Takes memory for rows that are about to be read. Waits for room behind others that came before, but not while the
   * account holds no rows at all: what it gathers for a part leaves only when more rows come, so waiting could be for
   * ever.
   * @throws the signal's reason when it is aborted
   */
  reserveRows(bytes: number, signal: AbortSignal): Promise<void>;
  /** Rows are gone, or fewer than were expected. A negative number: they turned out to be more. */
  releaseRows(bytes: number): void;
  /** Counts encoded bytes, room or not: they are there already. */
  reserveEncoded(bytes: number): void;
  releaseEncoded(bytes: number): void;
  /** Whether the process holds more than its budget, so that what can leave should leave first. */
  isOverBudget(): boolean;
  /** Gives everything back; the account cannot be used any more. */
  close(): void;
}

/** The memory for rows and encoded bytes of all the runs of a process. */
export interface MemoryBudget {
  openReservation(): MemoryReservation;
}

interface ReservationState {
  rows: number;
  encoded: number;
  closed: boolean;
}

interface Waiting {
  readonly account: ReservationState;
  readonly bytes: number;
  readonly grant: () => void;
}

/** A budget of so many bytes. It is a goal and not a wall: every account may always hold some rows. */
export function createMemoryBudget(limit: number): MemoryBudget {
  let held = 0;
  let waiting: Waiting[] = [];

  /** Serves who waits, in order of arrival; who holds no rows is not kept by those in front. */
  const serve = (): void => {
    let blocked = false;
    const left: Waiting[] = [];
    for (const request of waiting) {
      const { account, bytes, grant } = request;
      blocked ||= held + bytes > limit;
      if (blocked && account.rows > 0) left.push(request);
      else {
        change(account, 'rows', bytes);
        grant();
      }
    }
    waiting = left;
  };

  const change = (account: ReservationState, what: 'rows' | 'encoded', bytes: number): void => {
    if (account.closed) return;
    account[what] += bytes;
    held += bytes;
  };

  return {
    openReservation() {
      const account: ReservationState = { rows: 0, encoded: 0, closed: false };
      const give = (what: 'rows' | 'encoded', bytes: number): void => {
        change(account, what, -bytes);
        serve();
      };
      return {
        reserveRows: (bytes, signal) => room(account, bytes, signal),
        releaseRows: (bytes) => give('rows', bytes),
        reserveEncoded: (bytes) => change(account, 'encoded', bytes),
        releaseEncoded: (bytes) => give('encoded', bytes),
        isOverBudget: () => held > limit,
        close: () => {
          give('rows', account.rows);
          give('encoded', account.encoded);
          account.closed = true;
        },
      };
    },
  };

  async function room(account: ReservationState, bytes: number, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const granted = Promise.withResolvers<undefined>();
    const request = { account, bytes, grant: () => granted.resolve(undefined) };
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
