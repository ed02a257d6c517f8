import { BoundedMap } from '../concurrency/bounded_map.ts';
import type { DataInterval } from '../domain/intervals.ts';
import { backfillOf, type ExistingRun } from '../domain/run_state.ts';

/** The barrier that the intervals of a backfill share. */
interface BackfillBarrier {
  /** They end until then (ISO 8601). */
  readonly cutoff: string;
  /** Whether a run has seen it open. It stays so. */
  isOpen: boolean;
}

/** Which barriers the runs of backfills share, as far as this process has seen them. */
export type BackfillBarriers = ReturnType<typeof createBackfillBarriers>;

/** Bounds the memory of a process. The runs of a forgotten backfill wait once more. */
const maxBackfills = 1_000;

/**
 * @param readRange the time that all intervals of a backfill are in; null if it grows
 * @param settleMs how long after the end of an interval transactions may begin that still add rows to it, in milliseconds
 */
export function createBackfillBarriers(
  readRange: (backfillId: string) => Promise<DataInterval | null>,
  settleMs: number,
) {
  const known = new BoundedMap<string, BackfillBarrier | null>(maxBackfills);
  const barrierIn = (range: DataInterval, created_at: string): BackfillBarrier => {
    // Settled for certain, so that old intervals do not wait for a new one.
    const settled = new Date(Date.parse(created_at) - 2 * settleMs).toISOString();
    return { cutoff: Date.parse(range.end) < Date.parse(settled) ? range.end : settled, isOpen: false };
  };
  const read = async (id: string, created_at: string): Promise<BackfillBarrier | null> => {
    const range = await readRange(id);
    // Another run may have read it meanwhile.
    const barrier = known.get(id) ?? (range && barrierIn(range, created_at));
    known.set(id, barrier);
    return barrier;
  };
  return {
    /** The barrier that a run shares; undefined for one that waits for its own. */
    of: async ({ spec, created_at }: ExistingRun): Promise<BackfillBarrier | undefined> => {
      const id = backfillOf(spec);
      if (id === null) return undefined;
      const barrier = known.has(id) ? known.get(id) : await read(id, created_at);
      if (!barrier) return undefined;
      return Date.parse(spec.data_interval_end) <= Date.parse(barrier.cutoff) ? barrier : undefined;
    },
  };
}
