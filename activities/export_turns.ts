import type { ExportSlots } from '../src/temporal/export_slots.ts';

/** The turns of a worker's exports: how many attempts of one export move rows at once. */
export interface ExportTurns {
  /**
   * Waits for a turn of an export, its slot lent to another meanwhile.
   * @returns a function that gives it back, once.
   * @throws the signal's reason when it is aborted
   */
  readonly take: (batchExportId: string, signal: AbortSignal) => Promise<() => void>;
}

/**
 * As many turns of each export, so that one with a great many intervals never has every slot for hours. Only for who sets
 * it: an attempt that waits for a turn here may do so while another worker has slots free, since nothing hands it over.
 */
export function createExportTurns(turnsPerExport: number, slots: Pick<ExportSlots, 'lend'>): ExportTurns {
  const taken = new Map<string, number>();
  const waiting = new Map<string, Set<() => void>>();

  const giveBack = (id: string): void => {
    const [next] = waiting.get(id) ?? [];
    // Handed on, so that whoever asks now comes after those that wait.
    const left = (taken.get(id) ?? 0) - (next ? 0 : 1);
    if (left > 0) taken.set(id, left);
    else taken.delete(id);
    next?.();
  };

  const handedOn = async (id: string, signal: AbortSignal): Promise<void> => {
    const { promise, resolve, reject } = Promise.withResolvers<undefined>();
    const queue = waiting.get(id) ?? new Set<() => void>();
    const leave = (): void => {
      queue.delete(turn);
      if (queue.size === 0) waiting.delete(id);
      signal.removeEventListener('abort', abort);
    };
    // Out of the queue at once: the next turn that is given back, or this one's abort, is another matter.
    const turn = (): void => {
      leave();
      resolve(undefined);
    };
    const abort = (): void => {
      leave();
      reject(signal.reason);
    };
    waiting.set(id, queue.add(turn));
    signal.addEventListener('abort', abort);
    await promise;
  };

  return {
    take: async (id, signal) => {
      signal.throwIfAborted();
      const under = taken.get(id) ?? 0;
      if (under < turnsPerExport) taken.set(id, under + 1);
      else {
        const takeBack = slots.lend();
        try {
          await handedOn(id, signal);
        } finally {
          takeBack?.();
        }
      }
      let ended = false;
      return () => {
        if (!ended) giveBack(id);
        ended = true;
      };
    },
  };
}
