/**
 * How many permits may be held at a time: altogether, by a key, and by a member of a key (for example by a project, and
 * by one of its API keys). A limit that is missing does not apply.
 */
export interface PermitLimits {
  readonly total?: number;
  readonly perKey?: number;
  readonly perMember?: number;
  /** Whether the last free permit is kept for a key that holds none, so that no key alone makes another wait. */
  readonly keepsLast?: boolean;
  /** Permits that may be lent at a time, beyond `total`. Default: none. */
  readonly lendable?: number;
}

interface AcquireOptions<Member> {
  readonly member?: Member;
  /** Of the callers of a key and member the lowest comes first. Default: 0. */
  readonly rank?: number;
  readonly signal?: AbortSignal;
  /** After `ms` milliseconds the wait ends with this error. */
  readonly timeout?: { readonly ms: number; readonly error: () => unknown };
  /** Called once if the caller waits although permits are free, because none of them is for its key or member. */
  readonly onLimited?: () => void;
}

/** A caller that waits for a permit. */
export interface Waiter<Key, Member> {
  readonly key: Key;
  readonly member: Member | undefined;
  /** Ends the wait with an error, which is made once the caller has left the queue. */
  reject(error: () => unknown): void;
}

/** Half of the use of permits is forgotten after this time. */
const halfLifeMs = 60_000;
/** A use that no longer matters. */
const forgottenMs = 1;

/** What a key holds, and for how long it has held permits. */
interface Use<Member> {
  held: number;
  readonly byMember: Map<Member | undefined, number>;
  usedMs: number;
  usedAt: number;
}

interface QueuedWaiter<Key, Member> extends Waiter<Key, Member> {
  readonly rank: number;
  readonly grant: () => void;
  readonly limited: () => void;
}

/**
 * Creates a fair semaphore. A free permit goes to the key that holds the fewest, among those to the key that has used
 * permits the least, then to the member of it that holds the fewest, and then to the caller of the lowest rank that has waited
 * longest. So the callers of one key, member and rank are served in order of arrival, and a caller that sends many delays only
 * itself.
 *
 * A permit passes directly to the next caller: at rest no waiting caller could hold one more, so a newcomer that can
 * overtakes none.
 * Every function that ends something does so once, however often it is called.
 * @param now a clock in milliseconds, for tests
 */
export function createKeyedSemaphore<Key, Member = never>(
  {
    total = Infinity,
    perKey = Infinity,
    perMember = Infinity,
    keepsLast = false,
    lendable = 0,
  }: PermitLimits,
  now = () => performance.now(),
) {
  const uses = new Map<Key, Use<Member>>();
  const waiting = new Set<QueuedWaiter<Key, Member>>();
  let held = 0;
  let lent = 0;

  const heldBy = (key: Key): number => uses.get(key)?.held ?? 0;
  const heldByMember = (key: Key, member?: Member): number => uses.get(key)?.byMember.get(member) ?? 0;
  const decayed = (use: Use<Member> | undefined, at = now()): number =>
    use ? use.usedMs * 0.5 ** ((at - use.usedAt) / halfLifeMs) : 0;

  /** The limit that one more permit of this key and member would exceed, except the total. */
  const exceeded = (key: Key, member?: Member): 'member' | 'key' | undefined => {
    if (heldBy(key) >= perKey) return 'key';
    return heldByMember(key, member) >= perMember ? 'member' : undefined;
  };
  const isFree = ({ key, member }: Pick<Waiter<Key, Member>, 'key' | 'member'>): boolean =>
    total + lent - held > (keepsLast && heldBy(key) > 0 ? 1 : 0) && exceeded(key, member) === undefined;

  /** The waiting caller whose turn it is. The sort is stable, so the one that came first wins a tie. */
  const next = (): QueuedWaiter<Key, Member> | undefined => {
    // One time for all: the use of a key is not less than its own.
    const at = now();
    return [...waiting]
      .filter(isFree)
      .sort(
        (one, other) =>
          heldBy(one.key) - heldBy(other.key) ||
          decayed(uses.get(one.key), at) - decayed(uses.get(other.key), at) ||
          heldByMember(one.key, one.member) - heldByMember(other.key, other.member) ||
          one.rank - other.rank,
      )[0];
  };

  const grantFree = (): void => {
    for (let waiter = next(); waiter; waiter = next()) {
      waiting.delete(waiter);
      waiter.grant();
    }
    if (held < total + lent) for (const waiter of waiting) waiter.limited();
    // Only keys that compete for a total need to be remembered for what they used.
    for (const [key, use] of uses)
      if (use.held === 0 && (total === Infinity || decayed(use) < forgottenMs)) uses.delete(key);
  };

  /** Takes a permit, which is free. */
  const take = (key: Key, member?: Member): (() => void) => {
    const use = uses.get(key) ?? { held: 0, byMember: new Map(), usedMs: 0, usedAt: now() };
    uses.set(key, use);
    const takenAt = now();
    held += 1;
    use.held += 1;
    use.byMember.set(member, heldByMember(key, member) + 1);
    return once(() => {
      held -= 1;
      use.held -= 1;
      const remaining = heldByMember(key, member) - 1;
      if (remaining > 0) use.byMember.set(member, remaining);
      else use.byMember.delete(member);
      use.usedMs = decayed(use) + now() - takenAt;
      use.usedAt = now();
      grantFree();
    });
  };

  const waitFor = async (key: Key, options: AcquireOptions<Member>): Promise<() => void> => {
    const { member, rank = 0, signal, timeout, onLimited } = options;
    const { promise, resolve, reject } = Promise.withResolvers<() => void>();
    const waiter: QueuedWaiter<Key, Member> = {
      key,
      member,
      rank,
      grant: () => resolve(take(key, member)),
      reject: (error) => {
        if (waiting.delete(waiter)) reject(error());
      },
      limited: once(() => onLimited?.()),
    };
    const abort = (): void => waiter.reject(() => signal?.reason);
    const timer = timeout && setTimeout(() => waiter.reject(timeout.error), timeout.ms);
    timer?.unref();
    signal?.addEventListener('abort', abort);
    waiting.add(waiter);
    if (held < total + lent) waiter.limited();
    try {
      return await promise;
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener('abort', abort);
    }
  };

  /** @returns a function that releases the permit; undefined if none is free for the key */
  const tryAcquire = (key: Key, member?: Member): (() => void) | undefined =>
    isFree({ key, member }) ? take(key, member) : undefined;

  return {
    tryAcquire,
    /**
     * Waits for a permit.
     * @returns a function that releases the permit
     * @throws the reason of the signal, the error of the timeout, or the error that `reject` was given
     */
    acquire: async (key: Key, options: AcquireOptions<Member> = {}): Promise<() => void> => {
      options.signal?.throwIfAborted();
      return tryAcquire(key, options.member) ?? waitFor(key, options);
    },
    /**
     * Lends one more permit than there are, because a holder waits and does nothing with its own. After it was reclaimed,
     * more may be held than exist, until a holder releases one.
     * @returns a function that reclaims it; undefined when no more may be lent
     */
    lend: (): (() => void) | undefined => {
      if (lent >= lendable) return undefined;
      lent += 1;
      grantFree();
      return once(() => {
        lent -= 1;
      });
    },
    /** Permits that are lent now. */
    get lent() {
      return lent;
    },
    /** The waiting callers, in order of arrival. */
    get waiting(): Iterable<Waiter<Key, Member>> {
      return waiting;
    },
    exceeded,
  };
}

/** A function that does something the first time that it is called. */
function once(action: () => void): () => void {
  let isDone = false;
  return () => {
    if (isDone) return;
    isDone = true;
    action();
  };
}

/**
 * Calls `work` for every item, `limit` at a time. After the first error it starts no further item, waits for the running
 * ones and throws the error.
 */
export async function forEachConcurrently<Item>(
  items: Iterable<Item>,
  limit: number,
  work: (item: Item) => Promise<void>,
): Promise<void> {
  const iterator = items[Symbol.iterator]();
  const errors: unknown[] = [];
  const runNext = async (): Promise<void> => {
    for (let next = iterator.next(); !next.done && errors.length === 0; next = iterator.next())
      await work(next.value).catch((error: unknown) => errors.push(error));
  };
  await Promise.all(Array.from({ length: limit }, runNext));
  if (errors.length > 0) throw errors[0];
}

/** Calls functions in turns of the event loop, so many in each, between which other events of the process are handled. */
export function createTurns(callsOfTurn: number): (call: () => void) => void {
  const waiting: (() => void)[] = [];
  const takeTurn = () => {
    for (const call of waiting.slice(0, callsOfTurn)) call();
    waiting.splice(0, callsOfTurn);
    if (waiting.length > 0) setImmediate(takeTurn);
  };
  return (call) => {
    if (waiting.push(call) === 1) setImmediate(takeTurn);
  };
}
